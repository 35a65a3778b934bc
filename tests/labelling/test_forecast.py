"""The estimate of accuracy now and its forecast: what it rests on moves it the right way, and it stays within bounds."""

from __future__ import annotations

import math

import pytest

from dmin.labelling.forecast import MEASURED, Constants, Signals, estimate, logit

RECORD = tuple(place % 3 == 0 for place in range(40))


def signals(counts: tuple[int, ...] = (3,) * 20, agreement: float = 0.5, right: tuple[bool, ...] = RECORD) -> Signals:
    return Signals(counts, agreement, right)


def test_nothing_is_said_before_ten_answers() -> None:
    assert estimate(signals(right=RECORD[:9])) is None and estimate(signals(counts=())) is None
    found = estimate(signals(right=RECORD[:10]))
    assert found is not None and found.answers == 10


def test_the_estimate_is_the_linear_function_of_its_constants() -> None:
    constants = Constants((0.5, 0.8, -1.0, 0.25), (0.4, 0.1, 0.2), 0.3, 0.4)
    found = estimate(signals((1, 1, 2, 4), 0.6, (True,) * 5 + (False,) * 25), [16], constants)
    assert found is not None and found.now.labels == 8 and len(found.later) == 1
    level = 0.5 + 0.8 * math.log(0.6 / 0.4) - 1.0 * 2 / 8 + 0.25 * math.log((6 / 32) / (26 / 32))
    slope = 0.4 + 0.1 * math.log(0.6 / 0.4) + 0.2 * 2 / 8
    assert logit(found.now.accuracy) == pytest.approx(level)
    assert logit(found.later[0].accuracy) == pytest.approx(level + slope * math.log(2))
    assert logit(found.now.high) - logit(found.now.low) == pytest.approx(2 * 1.96 * 0.3)
    spread = math.hypot(0.3, 0.4 * math.log(2))
    assert logit(found.later[0].high) - logit(found.later[0].low) == pytest.approx(2 * 1.96 * spread)


def test_what_speaks_for_more_accuracy_raises_the_estimate() -> None:
    def now(**options: object) -> float:
        found = estimate(signals(**options))  # type: ignore[arg-type]
        assert found is not None
        return found.now.accuracy

    assert now(agreement=0.3) < now(agreement=0.5) < now(agreement=0.8)
    assert now(counts=(1,) * 20 + (4,) * 10) < now(counts=(2,) * 30)  # classes of one label: others are still unseen
    assert now(right=(False,) * 40) < now() < now(right=(True,) * 40)


def test_only_the_latest_predictions_count() -> None:
    early = (False,) * 50
    assert estimate(signals(right=early + (True,) * 30)) != estimate(signals(right=early + (False,) * 30))
    later, alone = estimate(signals(right=early + (True,) * 30)), estimate(signals(right=(True,) * 30))
    assert later is not None and alone is not None and later.now == alone.now


def test_the_forecast_rises_and_is_less_sure() -> None:
    found = estimate(signals())
    assert found is not None and [step.labels for step in found.later] == [90, 120]
    steps = (found.now, *found.later)
    accuracies = [step.accuracy for step in steps]
    assert accuracies == sorted(accuracies) and all(0 <= s.low <= s.accuracy <= s.high <= 1 for s in steps)
    odds = [math.log(s.high / (1 - s.high)) - math.log(s.low / (1 - s.low)) for s in steps]
    assert odds == sorted(odds)
    assert str(found).startswith("accuracy on this pile: about ")


@pytest.mark.parametrize("agreement", [-0.4, 0.0, 1.0])
@pytest.mark.parametrize("right", [True, False])
def test_extremes_stay_within_bounds(right: bool, agreement: float) -> None:
    found = estimate(signals((1,) * 20, agreement, (right,) * 20), ahead=[40, 400])
    assert found is not None and len(found.later) == 2
    assert all(0 < step.low <= step.accuracy <= step.high < 1 for step in (found.now, *found.later))


def test_the_measured_constants_are_plausible() -> None:
    assert MEASURED.level[1] > 0 > MEASURED.level[2] and MEASURED.level[3] > 0
    assert 0 < MEASURED.level_spread < 1 and 0 < MEASURED.slope_spread < 1

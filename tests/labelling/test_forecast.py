"""The estimate of accuracy now and its forecast: a known curve is found again, and intervals hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dmin.labelling.forecast import Outcome, estimate


def curve(labels: float, level: float = -2.0, slope: float = 0.6) -> float:
    return 1 / (1 + math.exp(-(level + slope * math.log(labels))))


def drawn(count: int, seed: int) -> list[Outcome]:
    generator = np.random.default_rng(seed)
    return [Outcome(n, bool(generator.random() < curve(n)), 1) for n in range(2, count + 2)]


def test_nothing_is_said_before_ten_answers() -> None:
    assert estimate(drawn(9, 0), 11) is None
    assert estimate(drawn(10, 0), 12) is not None


def test_a_known_curve_is_found_within_its_interval() -> None:
    hits, later, errors = 0, 0, []
    for seed in range(60):
        found = estimate(drawn(200, seed), 202)
        assert found is not None and found.later[1].labels == 404
        hits += found.now.low <= curve(202) <= found.now.high
        later += found.later[1].low <= curve(404) <= found.later[1].high
        errors.append(found.now.accuracy - curve(202))
    assert hits >= 53 and later >= 53 and abs(float(np.mean(errors))) < 0.03


def test_more_labels_never_make_the_forecast_surer() -> None:
    found = estimate(drawn(60, 1), 62)
    assert found is not None
    widths = [step.high - step.low for step in (found.now, *found.later)]
    assert widths == sorted(widths) or found.later[0].accuracy > 0.9
    assert all(0 <= step.low <= step.accuracy <= step.high <= 1 for step in (found.now, *found.later))


def test_an_answer_counts_by_what_it_stands_for() -> None:
    mixed = [Outcome(50, place % 2 == 0, 9 if place % 2 == 0 else 1) for place in range(40)]
    even = [Outcome(50, place % 2 == 0, 1) for place in range(40)]
    one, two = estimate(mixed, 50), estimate(even, 50)
    assert one is not None and two is not None
    assert one.now.accuracy > 0.65 and two.now.accuracy == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("right", [True, False])
def test_all_right_or_all_wrong_stays_within_bounds(right: bool) -> None:
    found = estimate([Outcome(n, right) for n in range(2, 40)], 40, ahead=[80])
    assert found is not None and len(found.later) == 1
    assert (found.now.accuracy > 0.85) if right else (found.now.accuracy < 0.15)
    assert str(found).startswith("accuracy on this pile: about ")

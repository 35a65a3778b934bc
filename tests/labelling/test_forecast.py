"""The estimate of accuracy now and its forecast: a known truth is found again although the texts asked are hard ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dmin.labelling.forecast import Constants, Outcome, estimate


def logistic(value: Any) -> Any:
    return 1 / (1 + np.exp(-value))


def record(count: int, seed: int, shift: float = 0.5) -> tuple[list[Outcome], Any, float]:
    """Outcomes of hard texts, the confidences of a pile of easier ones, and the pile's true accuracy."""
    generator = np.random.default_rng(seed)
    hard, easy = generator.normal(-1.5, 1, count), generator.normal(0.5, 1, 2000)
    outcomes = [
        Outcome(place + 2, bool(generator.random() < logistic(shift + value)), float(logistic(value)))
        for place, value in enumerate(hard)
    ]
    return outcomes, logistic(easy), float(logistic(shift + easy).mean())


def test_nothing_is_said_before_ten_answers() -> None:
    outcomes, pile, _ = record(10, 0)
    assert estimate(outcomes[:9], pile, 11) is None and estimate(outcomes, [], 12) is None
    assert estimate(outcomes, pile, 12) is not None


def test_accuracy_of_the_pile_is_found_from_harder_texts() -> None:
    hits, errors, plain = 0, [], []
    for seed in range(60):
        outcomes, pile, truth = record(120, seed)
        found = estimate(outcomes, pile, 122, constants=Constants(trust=1.0, drift=0.0))  # as the record was drawn
        assert found is not None
        hits += found.now.low <= truth <= found.now.high
        errors.append(found.now.accuracy - truth)
        plain.append(np.mean([outcome.right for outcome in outcomes]) - truth)
    assert hits >= 53 and abs(float(np.mean(errors))) < 0.04
    assert float(np.mean(plain)) < -0.25  # what counting right and wrong alone would say


def test_the_forecast_rises_and_is_less_sure() -> None:
    outcomes, pile, _ = record(60, 1)
    found = estimate(outcomes, pile, 62)
    assert found is not None and [step.labels for step in found.later] == [93, 124]
    steps = (found.now, *found.later)
    accuracies = [step.accuracy for step in steps]
    assert accuracies == sorted(accuracies) and all(0 <= s.low <= s.accuracy <= s.high <= 1 for s in steps)
    odds = [math.log(s.high / (1 - s.high)) - math.log(s.low / (1 - s.low)) for s in steps]
    assert odds == sorted(odds)


@pytest.mark.parametrize("right", [True, False])
def test_all_right_or_all_wrong_stays_within_bounds(right: bool) -> None:
    found = estimate([Outcome(n, right, 0.5) for n in range(2, 40)], [0.5] * 20, 40, ahead=[80])
    assert found is not None and len(found.later) == 1
    assert (found.now.accuracy > 0.85) if right else (found.now.accuracy < 0.15)
    assert str(found).startswith("accuracy on this pile: about ")

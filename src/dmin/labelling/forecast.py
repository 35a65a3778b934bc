"""How good the classifier is now, and what more labels would bring, from its own record.

Prequential: every text was predicted before it was labelled, so the sequence of right and wrong is an honest test. But
the texts were chosen because they are hard, so each counts by the number of texts that it stands for. The learning
curve is a logistic regression of right or wrong on the logarithm of the number of labels,

    logit P(right at n labels) = a + b · log(n / n now),

with a normal prior on the slope b, whose mean and spread were measured on other data sets (reproduce/LABELLING.md).
Accuracy now is the curve at n now; the forecast is the curve further on. Intervals come from the curvature (Laplace).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

EVERY = 10  # answers between two estimates
LEVEL_SPREAD = 2.0
_Z = 1.96


@dataclass(frozen=True)
class Constants:
    """What was measured on other data sets."""

    slope: float = 0.6  # mean of the prior of b
    spread: float = 0.3  # its standard deviation
    weight_power: float = 0.5  # of stands_for: 0 counts every answer alike, 1 lets a few large regions decide


MEASURED = Constants()


@dataclass(frozen=True)
class Outcome:
    """One answer that had been predicted."""

    labels: int  # examples known when it was predicted
    right: bool
    stands_for: int = 1


@dataclass(frozen=True)
class Forecast:
    """Accuracy at a number of labels, with its 95 % interval."""

    labels: int
    accuracy: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.accuracy:.0f} % ({100 * self.low:.0f} to {100 * self.high:.0f})"


@dataclass(frozen=True)
class Estimate:
    """Accuracy now, and what more labels would bring."""

    answers: int  # predicted answers it rests on
    now: Forecast
    later: tuple[Forecast, ...]

    def __str__(self) -> str:
        coming = ", ".join(f"{step} with {step.labels} labels" for step in self.later)
        return f"accuracy on this pile: about {self.now} with {self.now.labels} labels; forecast: {coming}"


def estimate(
    outcomes: Sequence[Outcome], labels: int, ahead: Sequence[int] = (), constants: Constants = MEASURED
) -> Estimate | None:
    """Estimate accuracy at `labels` and, by default, at 1.5 and 2 times as many; None before the first ten outcomes.

    Args:
        outcomes: what was predicted, in order.
        labels: examples known now.
        ahead: the numbers of labels to forecast for.
        constants: the prior of the slope and the weight of an answer.
    """
    if len(outcomes) < EVERY or labels < 1:
        return None
    weights = np.array([max(1, outcome.stands_for) for outcome in outcomes], float) ** constants.weight_power  # [m]
    # Unequal weights carry less information than their number: scale them to the effective sample size.
    weights *= weights.sum() / (weights**2).sum()
    right = np.array([outcome.right for outcome in outcomes], float)  # [m]
    position = np.log(np.array([max(1, outcome.labels) for outcome in outcomes], float) / labels)  # [m]
    mean, covariance = _fit(np.stack([np.ones_like(position), position], axis=1), right, weights, constants)
    steps = ahead or (labels + max(EVERY, labels // 2), labels + max(2 * EVERY, labels))
    now, *later = (_at(mean, covariance, labels, step) for step in (labels, *steps))
    return Estimate(len(outcomes), now, tuple(later))


def _fit(design: Any, right: Any, weights: Any, constants: Constants) -> tuple[Any, Any]:
    """Posterior mode [2] and covariance [2, 2] of level and slope, by Newton's method with halved steps."""
    prior_mean = np.array([0.0, constants.slope])
    precision = np.diag([LEVEL_SPREAD**-2, constants.spread**-2])

    def objective(parameters: Any) -> float:
        logits = design @ parameters
        likelihood = weights @ (right * logits - np.logaddexp(0, logits))
        offset = parameters - prior_mean
        return float(likelihood - offset @ precision @ offset / 2)

    parameters = prior_mean.copy()
    curvature = precision
    for _ in range(50):
        probability = 1 / (1 + np.exp(-(design @ parameters)))
        gradient = design.T @ (weights * (right - probability)) - precision @ (parameters - prior_mean)
        curvature = (design.T * (weights * probability * (1 - probability))) @ design + precision
        step = np.linalg.solve(curvature, gradient)
        while objective(parameters + step) < objective(parameters) - 1e-12:
            step = step / 2
        parameters = parameters + step
        if np.abs(step).max() < 1e-8:
            break
    return parameters, np.linalg.inv(curvature)


def _at(mean: Any, covariance: Any, now: int, labels: int) -> Forecast:
    direction = np.array([1.0, math.log(labels / now)])
    centre, spread = float(direction @ mean), _Z * math.sqrt(float(direction @ covariance @ direction))
    low, middle, high = (1 / (1 + math.exp(-value)) for value in (centre - spread, centre, centre + spread))
    return Forecast(labels, middle, low, high)

"""How good the classifier is now, and what more labels would bring, from its own record.

Prequential: every text was predicted before it was labelled, so the sequence of right and wrong is an honest test. But the
texts were chosen because they are hard: their plain mean is far too low. So right or wrong is explained by how confident
logistic regression was about the text,

    logit P(right) = a + c · logit(confidence) + e · log(n / n now),

and accuracy now is the mean of that curve over the confidences of all texts that are not labelled. The forecast moves it
along a learning curve, logit accuracy growing by b · log(n), with b fitted to the record. b, c and e have normal priors
whose means were measured on other data sets (reproduce/LABELLING.md). Intervals come from the curvature (Laplace).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

EVERY = 10  # answers between two estimates
_Z = 1.96
_SPREAD = 0.6  # standard deviation of the priors


@dataclass(frozen=True)
class Constants:
    """What was measured on other data sets."""

    slope: float = 0.8  # mean of the prior of b
    trust: float = 1.0  # mean of the prior of c: above 1 where confidences are too modest
    drift: float = 1.0  # mean of the prior of e: at equal confidence, later predictions are better


MEASURED = Constants()


@dataclass(frozen=True)
class Outcome:
    """One answer that had been predicted."""

    labels: int  # examples known when it was predicted
    right: bool
    confidence: float  # that logistic regression had in its answer


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
    outcomes: Sequence[Outcome],
    pile: Any,
    labels: int,
    ahead: Sequence[int] = (),
    constants: Constants = MEASURED,
) -> Estimate | None:
    """Estimate accuracy at `labels` and, by default, at 1.5 and 2 times as many; None before the first ten outcomes.

    Args:
        outcomes: what was predicted, in order.
        pile: the confidences of the texts that are not labelled, now.
        labels: examples known now.
        ahead: the numbers of labels to forecast for.
        constants: priors that were measured on other data sets.
    """
    pile = np.asarray(pile, float)
    if len(outcomes) < EVERY or labels < 1 or not len(pile):
        return None
    right = np.array([outcome.right for outcome in outcomes], float)  # [m]
    position = np.log(np.array([max(1, outcome.labels) for outcome in outcomes], float) / labels)  # [m]
    ones, sure = np.ones_like(position), _logit([outcome.confidence for outcome in outcomes])
    # Level: right or wrong given the confidence, carried over to the pile.
    level = _fit(
        np.stack([ones, sure, position], axis=1),
        right,
        [0.0, constants.trust, constants.drift],
        [2.0, _SPREAD, _SPREAD],
    )
    rows = np.stack([np.ones_like(pile), _logit(pile), np.zeros_like(pile)], axis=1)  # [n, 3]
    probability = 1 / (1 + np.exp(-(rows @ level.mode)))  # [n]
    accuracy = float(np.clip(probability.mean(), 1e-3, 1 - 1e-3))
    gradient = (rows * (probability * (1 - probability))[:, None]).mean(axis=0)  # of the mean, by the parameters
    variance = float(gradient @ level.covariance @ gradient) / (accuracy * (1 - accuracy)) ** 2  # of its logit
    # Slope: the plain learning curve of the record.
    curve = _fit(np.stack([ones, position], axis=1), right, [0.0, constants.slope], [2.0, _SPREAD])
    steps = ahead or (labels + max(EVERY, labels // 2), labels + max(2 * EVERY, labels))
    now, *later = (
        _at(step, math.log(step / labels), float(_logit(accuracy)), variance, curve) for step in (labels, *steps)
    )
    return Estimate(len(outcomes), now, tuple(later))


@dataclass(frozen=True)
class _Fit:
    """The posterior of a logistic regression: its mode [p] and covariance [p, p]."""

    mode: Any
    covariance: Any


def _fit(design: Any, right: Any, mean: Sequence[float], spread: Sequence[float]) -> _Fit:
    """Logistic regression with independent normal priors, by Newton's method with halved steps."""
    prior, precision = np.array(mean), np.diag(np.array(spread) ** -2.0)

    def objective(parameters: Any) -> float:
        logits, offset = design @ parameters, parameters - prior
        return float((right * logits - np.logaddexp(0, logits)).sum() - offset @ precision @ offset / 2)

    parameters, curvature = prior.copy(), precision
    for _ in range(50):
        probability = 1 / (1 + np.exp(-(design @ parameters)))
        gradient = design.T @ (right - probability) - precision @ (parameters - prior)
        curvature = (design.T * (probability * (1 - probability))) @ design + precision
        step = np.linalg.solve(curvature, gradient)
        while objective(parameters + step) < objective(parameters) - 1e-12:
            step = step / 2
        parameters = parameters + step
        if np.abs(step).max() < 1e-8:
            break
    return _Fit(parameters, np.linalg.inv(curvature))


def _at(labels: int, distance: float, level: float, variance: float, curve: _Fit) -> Forecast:
    """The learning curve at `distance` = log(labels / labels now) from its level now, with its interval."""
    centre = level + float(curve.mode[1]) * distance
    spread = _Z * math.sqrt(variance + float(curve.covariance[1, 1]) * distance**2)
    low, middle, high = (1 / (1 + math.exp(-value)) for value in (centre - spread, centre, centre + spread))
    return Forecast(labels, middle, low, high)


def _logit(value: Any) -> Any:
    """The logarithm of the odds, within bounds."""
    bounded = np.clip(np.asarray(value, float), 1e-3, 1 - 1e-3)
    return np.log(bounded / (1 - bounded))

"""How good the classifier is now, and what more labels would bring.

Three things tell how many texts without a label are answered rightly, none of them enough alone:

- agreement: how often a text and its nearest neighbour are given the same class (`neighbour_agreement`);
- singles: the share of labels whose class has no second one, the Good-Turing estimate of what belongs to classes not seen;
- the record: each text was predicted before it was labelled (prequential). These texts were chosen because they are hard,
  so that the plain share of right predictions is far too low.

The logit of accuracy is a linear function of the three, and it grows with the logarithm of the number of labels, by a slope
that is a linear function of the first two. The weights, and how far off such estimates are, were measured on nine data sets
by leaving one out (reproduce/LABELLING.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

EVERY = 10  # answers between two estimates
RECENT = 30  # predictions that the record's share is taken over
_Z = 1.96
_BOUND = 0.02  # shares are cut at this and at 1 minus this before their logits


@dataclass(frozen=True)
class Constants:
    """What was measured on other data sets: weights, and the standard deviations of what they miss, in logits."""

    level: tuple[float, float, float, float]  # of 1, logit agreement, singles, logit of the record's share
    slope: tuple[float, float, float]  # of 1, logit agreement, singles
    level_spread: float
    slope_spread: float


MEASURED = Constants((-0.107, 1.059, -0.959, 0.135), (0.345, 0.086, 0.46), level_spread=0.312, slope_spread=0.322)


@dataclass(frozen=True)
class Signals:
    """What is known about a session without one label more.

    Args:
        counts: labels of each class, none of them 0.
        agreement: `neighbour_agreement` of the texts without a label.
        right: was each predicted answer right, in their order?
    """

    counts: tuple[int, ...]
    agreement: float
    right: tuple[bool, ...]

    @property
    def labels(self) -> int:
        """Labels bought so far."""
        return sum(self.counts)

    @property
    def features(self) -> tuple[float, float, float, float]:
        """1, logit agreement, singles, logit of the record's share."""
        recent = self.right[-RECENT:]
        singles = self.counts.count(1) / max(1, self.labels)
        return 1.0, logit(self.agreement), singles, logit((sum(recent) + 1) / (len(recent) + 2))


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


def estimate(signals: Signals, ahead: Sequence[int] = (), constants: Constants = MEASURED) -> Estimate | None:
    """Estimate accuracy now and, by default, with 1.5 and 2 times as many labels; None before ten predicted answers.

    Args:
        signals: what is known about the session.
        ahead: the numbers of labels to forecast for.
        constants: what was measured on other data sets.
    """
    labels = signals.labels
    if len(signals.right) < EVERY or labels < 1:
        return None
    features = signals.features
    level = _product(constants.level, features)
    slope = max(0.0, _product(constants.slope, features[:3]))
    steps = ahead or (labels + max(EVERY, labels // 2), labels + max(2 * EVERY, labels))
    now, *later = (_at(step, math.log(step / labels), level, slope, constants) for step in (labels, *steps))
    return Estimate(len(signals.right), now, tuple(later))


def logit(share: float) -> float:
    """The logarithm of the odds, within bounds."""
    bounded = min(max(share, _BOUND), 1 - _BOUND)
    return math.log(bounded / (1 - bounded))


def _product(weights: Sequence[float], features: Sequence[float]) -> float:
    return sum(weight * feature for weight, feature in zip(weights, features, strict=True))


def _at(labels: int, distance: float, level: float, slope: float, constants: Constants) -> Forecast:
    """Accuracy at `distance` = log(labels / labels now), with its interval."""
    centre = level + slope * distance
    spread = _Z * math.hypot(constants.level_spread, constants.slope_spread * distance)
    low, middle, high = (1 / (1 + math.exp(-value)) for value in (centre - spread, centre, centre + spread))
    return Forecast(labels, middle, low, high)

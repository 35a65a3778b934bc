"""Precision against coverage: how many texts are answered, and how many of the answers are right, at each threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmin.errors import ConfigError


@dataclass(frozen=True)
class PrecisionPoint:
    """What a threshold on the highest cosine gives."""

    threshold: float  # to be used as `reject`
    precision: float  # right ones among the answers
    coverage: float  # answered ones among all texts, out-of-scope texts included
    answered: int


@dataclass(frozen=True)
class PrecisionCurve:
    """Precision and coverage at every threshold that makes a difference, from few answers to all of them."""

    thresholds: NDArray[np.float64]  # [t], falling
    precision: NDArray[np.float64]  # [t]
    coverage: NDArray[np.float64]  # [t], rising
    texts: int

    def at(self, target: float) -> PrecisionPoint | None:
        """The threshold that answers most texts with at least this precision; None where none does.

        It is found on these texts, so that on others the precision may be a little lower: use a few hundred.
        """
        if not 0 < target <= 1:
            raise ConfigError(f"a target precision of {target!r}: a number above 0 and at most 1 is needed")
        reached = np.flatnonzero(self.precision >= target)
        return self.point(int(reached[-1])) if len(reached) else None

    @property
    def best(self) -> PrecisionPoint:
        """The highest precision there is, with as many answers as possible."""
        return self.point(int(np.flatnonzero(self.precision == self.precision.max())[-1]))

    def point(self, place: int) -> PrecisionPoint:
        """One place of the curve."""
        coverage = float(self.coverage[place])
        return PrecisionPoint(
            float(self.thresholds[place]), float(self.precision[place]), coverage, round(coverage * self.texts)
        )


def precision_curve(scores: Any, right: Any) -> PrecisionCurve:
    """The curve of texts with these highest cosines, whose nearest class is right or not.

    Args:
        scores: the highest cosine of each text, [n].
        right: is the nearest class the text's own, [n]; never for an out-of-scope text.
    """
    values, hits = np.asarray(scores, dtype=float), np.asarray(right, dtype=float)
    order = np.argsort(-values, kind="stable")
    values, hits = values[order], hits[order]
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True))  # equal cosines are answered together
    below = np.append(values[1:], -1.0)[last]
    thresholds = np.array([_between(low, high) for low, high in zip(below, values[last], strict=True)])
    answered = last + 1
    return PrecisionCurve(thresholds, np.cumsum(hits)[last] / answered, answered / len(values), len(values))


def _between(low: float, high: float) -> float:
    """A number above `low` and at most `high` with few digits, near the middle."""
    middle = (low + high) / 2
    for digits in range(2, 8):
        rounded = round(middle, digits)
        if low < rounded <= high:
            return rounded
    return middle if low < middle else high

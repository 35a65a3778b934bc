"""Honest numbers: a mean never goes without its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Interval:
    """A mean and the half width of its 95 % confidence interval."""

    mean: float
    half_width: float

    def percent(self) -> str:
        """As "84.5 ± 0.9"."""
        return f"{100 * self.mean:.1f} ± {100 * self.half_width:.1f}"


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Mean over episodes with Student's t interval; with one value the half width is not a number."""
    data = np.asarray(values, dtype=float)
    if data.size == 0:
        raise ValueError("no values")
    if data.size == 1:
        return Interval(float(data[0]), float("nan"))
    error = data.std(ddof=1) / np.sqrt(data.size)
    return Interval(float(data.mean()), float(stats.t.ppf(0.5 + confidence / 2, data.size - 1) * error))

"""Means with their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dmin.evaluation import mean_interval


def test_by_hand() -> None:
    interval = mean_interval([1.0, 2.0, 3.0, 4.0])
    assert interval.mean == 2.5
    # s = sqrt(5/3), t(0.975, 3) = 3.18245: 3.18245 * 1.29099 / 2
    assert interval.half_width == pytest.approx(2.05426, abs=1e-4)


def test_equals_scipy() -> None:
    values = np.random.default_rng(0).random(50)
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    interval = mean_interval(values.tolist())
    assert (interval.mean - interval.half_width, interval.mean + interval.half_width) == pytest.approx((low, high))


def test_edges() -> None:
    assert math.isnan(mean_interval([0.5]).half_width)
    assert mean_interval([0.5, 0.5]).half_width == 0
    assert mean_interval([0.8, 0.9]).percent().startswith("85.0 ± ")
    with pytest.raises(ValueError, match="no values"):
        mean_interval([])

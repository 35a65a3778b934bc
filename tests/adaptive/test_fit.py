"""The quantile of numpy without its masked arrays."""

from __future__ import annotations

import numpy as np
import pytest

from dmin.adaptive.fit import quantile


@pytest.mark.parametrize("size", [1, 2, 3, 10, 101])
def test_the_quantile_is_that_of_numpy_to_the_last_bit(size: int) -> None:
    random = np.random.default_rng(size)
    for part in (0.0, 0.1, 0.25, 0.5, 0.9, 1.0, *random.random(50)):
        values = random.random(size)
        assert quantile(values, float(part)) == np.quantile(values, part)

"""Means with their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dmin.evaluation.statistics import (
    PERMUTATIONS,
    holm,
    mean_interval,
    paired_test,
    sign_flip_p,
    split_interval,
    split_test,
    spread,
)


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


def test_paired_test_equals_scipy_and_counts_by_hand() -> None:
    first, second = [0.9, 0.8, 0.7, 0.95, 0.85], [0.8, 0.75, 0.72, 0.9, 0.8]
    found = paired_test(first, second)
    assert found.difference == pytest.approx(0.046)
    assert found.t_p == pytest.approx(stats.ttest_rel(first, second, alternative="greater").pvalue)
    # All 32 sign flips of (0.1, 0.05, -0.02, 0.05, 0.05): only all-positive and the observed one reach 0.23.
    assert found.permutation_p == pytest.approx(2 / 32)
    assert paired_test(second, first).t_p == pytest.approx(1 - found.t_p)


def test_paired_test_on_many_episodes_is_seeded_and_sane() -> None:
    random = np.random.default_rng(0)
    base = random.random(300)
    better, same = (base + 0.05 + 0.01 * random.random(300)).tolist(), (base + 0.01 * random.normal(size=300)).tolist()
    assert paired_test(better, base.tolist()).permutation_p == pytest.approx(1 / 20_000)
    assert paired_test(same, base.tolist()) == paired_test(same, base.tolist())
    assert paired_test(base.tolist(), base.tolist()).t_p == 1.0
    assert paired_test([0.6, 0.7], [0.5, 0.6]).t_p < 0.05 and paired_test([0.5, 0.6], [0.6, 0.7]).t_p > 0.9


@pytest.mark.parametrize("count", [5, 14, 15, 200])
def test_flipped_signs_give_what_scipy_gives(count: int) -> None:
    """Exactly where all flips are looked at, up to the drawing of 19,999 of them elsewhere."""
    differences = np.round(np.random.default_rng(count).normal(0.02, 0.1, count), 2)
    theirs = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", alternative="greater", n_resamples=PERMUTATIONS,
        vectorized=True, rng=np.random.default_rng(1),
    ).pvalue  # fmt: skip
    assert sign_flip_p(differences) == pytest.approx(theirs, abs=1e-12 if count < 15 else 0.02)


def test_only_pairs_are_compared() -> None:
    with pytest.raises(ValueError, match="paired values"):
        paired_test([0.1, 0.2], [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="two shared splits"):
        split_test([0.5], [0.4], 0.0)


def test_split_test_has_one_value_per_split() -> None:
    first, second = [0.85, 0.83, 0.88], [0.80, 0.82, 0.85]
    plain = split_test(first, second, 0.0)  # as if the splits shared nothing
    assert plain == pytest.approx(stats.ttest_rel(first, second, alternative="greater").pvalue)
    assert split_test([0.5, 0.6], [0.4, 0.5], 1.0) < 0.05 and split_test([0.4, 0.5], [0.5, 0.6], 1.0) == 1.0


def test_two_splits_that_differ_alike_by_chance_show_nothing() -> None:
    """Differences of 2 points on both splits: without spread the t statistic would be infinite."""
    first, second = [0.94, 0.91], [0.92, 0.89]
    noise = 0.003**2  # 0.3 points of sampling error on each split
    assert split_test(first, second, 0.5, noise) == pytest.approx(stats.t.sf(0.02 / 0.003, 1), rel=1e-6)
    assert 0.04 < split_test(first, second, 0.5, noise) < 0.05  # far from 0, so Holm takes it away
    assert split_test([0.9, 0.5], [0.5, 0.4], 0.5, noise) == split_test(
        [0.9, 0.5], [0.5, 0.4], 0.5
    )  # more spread than that


def test_split_test_with_corrected_variance_by_hand() -> None:
    """Nadeau and Bengio: the variance of the mean is (1/J + n_test/n_train) s^2."""
    first, second = [0.85, 0.83, 0.88], [0.80, 0.82, 0.85]
    # differences 0.05, 0.01, 0.03: mean 0.03, s = 0.02; t = 0.03 / (0.02 sqrt(1/3 + 27/25)) = 1.261737
    assert split_test(first, second, 27 / 25) == pytest.approx(stats.t.sf(1.261737, 2), abs=1e-6)
    assert split_test(first, second, 27 / 25) == pytest.approx(0.167, abs=1e-3)
    assert split_test(second, first, 27 / 25) == pytest.approx(1 - split_test(first, second, 27 / 25))


def test_split_interval_by_hand() -> None:
    # s = 0.025166, t(0.975, 2) = 4.302653: 4.302653 * 0.025166 * sqrt(1/3 + 0.5) = 0.098848
    interval = split_interval([0.85, 0.83, 0.88], 0.5)
    assert interval.mean == pytest.approx(0.853333, abs=1e-6)
    assert interval.half_width == pytest.approx(0.098848, abs=1e-5)
    assert split_interval([0.85, 0.83, 0.88], 0.0).half_width == pytest.approx(
        mean_interval([0.85, 0.83, 0.88]).half_width
    )
    assert math.isnan(split_interval([0.5], 0.5).half_width)


def test_holm_by_hand() -> None:
    corrected = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.5})
    assert corrected == pytest.approx({"a": 0.04, "c": 0.09, "b": 0.09, "d": 0.5})
    assert holm({"x": 0.9, "y": 0.8})["y"] == 1.0
    assert holm({}) == {}
    assert holm({("b", 5): 0.02, ("h", 5): 0.03}) == pytest.approx({("b", 5): 0.04, ("h", 5): 0.04})


def test_spread() -> None:
    assert spread([0.1, 0.3]) == pytest.approx(math.sqrt(0.02))
    assert math.isnan(spread([0.1]))

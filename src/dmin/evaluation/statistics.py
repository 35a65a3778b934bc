"""Statistics over episodes and over class splits: confidence intervals, paired tests, Holm's correction.

Class splits of one data set share classes, so their means are not independent. The variance over them is corrected as in
Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52 (2003): 1/J becomes 1/J + n_test/n_train,
with the J splits' numbers of test and training classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from scipy import stats

PERMUTATIONS = 19_999  # p can be as low as 1/20,000, so that Holm leaves something of 500 two-tailed tests
ALPHA = 0.05
ROUNDING = 1e-12  # sums that differ by less, relative to all differences, are equal
Name = TypeVar("Name")


@dataclass(frozen=True)
class Interval:
    """A mean and the half width of its 95 % confidence interval."""

    mean: float
    half_width: float

    def percent(self, digits: int = 1) -> str:
        """As "84.5 ± 0.9"."""
        return f"{100 * self.mean:.{digits}f} ± {100 * self.half_width:.{digits}f}"


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean with Student's 95 % t interval; with one value the half width is NaN."""
    data = np.asarray(values, dtype=float)
    if data.size == 0:
        raise ValueError("no values")
    if data.size == 1:
        return Interval(float(data[0]), float("nan"))
    error = data.std(ddof=1) / np.sqrt(data.size)
    return Interval(float(data.mean()), float(stats.t.ppf(0.975, data.size - 1) * error))


def split_interval(means: Sequence[float], ratio: float) -> Interval:
    """Mean over class splits with a 95 % t interval of corrected variance; with one split the half width is NaN.

    Args:
        means: the mean accuracy of each split.
        ratio: test classes / training classes of a split.
    """
    data = np.asarray(means, dtype=float)
    if data.size < 2:
        return mean_interval(means)
    error = _split_error(data, ratio)
    return Interval(float(data.mean()), float(stats.t.ppf(0.975, data.size - 1) * error))


def _split_error(values: np.ndarray, ratio: float, noise: float = 0.0) -> float:
    """Standard error of a mean over class splits, after Nadeau and Bengio; no variance below `noise`."""
    return float(np.sqrt((1 / values.size + ratio) * max(values.var(ddof=1), noise)))


def spread(values: Sequence[float]) -> float:
    """Standard deviation over repetitions (seeds); NaN with fewer than two."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


@dataclass(frozen=True)
class PairedTest:
    """One-tailed tests of "the first is better than the second" on shared episodes."""

    difference: float  # mean of first - second
    t_p: float  # paired t-test
    permutation_p: float  # sign-flip permutation test
    pairs: int


def paired_test(first: Sequence[float], second: Sequence[float], seed: int = 0) -> PairedTest:
    """Is `first` better than `second`, episode by episode?

    Raises:
        ValueError: when the two are not of the same length, so not of the same episodes.
    """
    one, two = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if one.shape != two.shape or one.ndim != 1 or one.size < 2:
        raise ValueError(f"paired values are needed, at least two of each; got {one.shape} and {two.shape}")
    differences = one - two
    if not differences.any():
        return PairedTest(0.0, 1.0, 1.0, one.size)
    constant = np.ptp(differences) == 0  # no spread: the t statistic is infinite
    t_p = float(stats.ttest_rel(one, two, alternative="greater").pvalue) if not constant else float(differences[0] < 0)
    return PairedTest(float(differences.mean()), t_p, sign_flip_p(differences, seed), one.size)


def sign_flip_p(differences: np.ndarray, seed: int = 0) -> float:
    """One-tailed p of a permutation test of paired differences [n]: how often flipped signs give as high a sum.

    All 2^n flips where they are no more than `PERMUTATIONS`, else so many random ones, the observed one counted in. It is
    `scipy.stats.permutation_test` with `permutation_type="samples"`, which takes twenty times as long.
    """
    sums = _signs(differences.size, seed) @ differences
    return float((sums >= sums[0] - ROUNDING * np.abs(differences).sum()).mean())


@lru_cache(maxsize=1)  # the tests of a table have as many episodes each
def _signs(count: int, seed: int) -> np.ndarray:
    """Flips of `count` signs as rows of 1 and -1; the first row flips none."""
    if 2**count <= PERMUTATIONS:
        flips = np.arange(2**count)[:, None] >> np.arange(count) & 1  # [2^n, n]
    else:
        flips = np.random.default_rng(seed).integers(0, 2, (PERMUTATIONS + 1, count), dtype=np.int8)
        flips[0] = 0
    return 1.0 - 2.0 * flips


def split_test(first: Sequence[float], second: Sequence[float], ratio: float, noise: float = 0.0) -> float:
    """One-tailed paired t-test of corrected variance over the means of several class splits; the p-value.

    Episodes of one split share classes and are not independent repetitions, so splits are never pooled by episode.

    Args:
        first: the means of the row that is asked to be better.
        second: those of the other row, on the same splits.
        ratio: test classes / training classes of a split.
        noise: variance that a split's difference has by its episodes alone. The variance over the splits holds it, but two
            or three differences can come out alike by chance: it is never taken for smaller.
    """
    one, two = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if one.size < 2 or one.shape != two.shape:
        raise ValueError(f"means of at least two shared splits are needed; got {one.size} and {two.size}")
    differences = one - two
    error = _split_error(differences, ratio, noise)
    if error == 0:  # no spread at all: the t statistic is infinite
        return float(differences[0] <= 0)
    return float(stats.t.sf(differences.mean() / error, one.size - 1))


def holm(p_values: Mapping[Name, float]) -> dict[Name, float]:
    """Holm's step-down correction of a family of p-values: all tests that one claim or table speaks of."""
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    corrected: dict[Name, float] = {}
    highest = 0.0
    for rank, (name, p) in enumerate(ordered):
        highest = max(highest, min(1.0, (len(ordered) - rank) * p))
        corrected[name] = highest
    return corrected

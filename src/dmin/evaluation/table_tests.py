"""Which rows of a table differ: paired tests of every row against the reference, corrected over the whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dmin.evaluation.bench import JobResult
from dmin.evaluation.statistics import (
    ALPHA,
    Interval,
    PairedTest,
    holm,
    mean_interval,
    paired_test,
    split_interval,
    split_test,
)

Place = tuple[str, str, int, int]  # data set, row, way, shot


@dataclass(frozen=True)
class RowTest:
    """One row beside the reference."""

    worse: float  # p of "the reference is better than this row", one-tailed t-test, as the paper tests
    worse_corrected: float  # the same two-tailed and after Holm; with one split by permutation test
    better_corrected: float  # p of "this row is better than the reference", two-tailed and after Holm

    @property
    def mark(self) -> str:
        """↑ significantly better than the reference, ↓ significantly worse."""
        return "↓" if self.worse_corrected < ALPHA else "↑" if self.better_corrected < ALPHA else ""


def row_tests(cells: Mapping[Place, Sequence[JobResult]], reference: str) -> dict[Place, RowTest]:
    """Test every cell against the reference's cell of the same column, on the splits that both have.

    A mark may go either way, so each direction counts twice: the tests are two-tailed. Holm's correction runs over all
    rows, columns and data sets of the table.
    """
    plain: dict[Place, float] = {}
    worse: dict[Place, float] = {}
    better: dict[Place, float] = {}
    for place, found in cells.items():
        data, row, way, shot = place
        ours = cells.get((data, reference, way, shot))
        if row == reference or not ours or not shared_splits(ours, found):
            continue
        plain[place], forward, backward = _compare(ours, found)
        worse[place], better[place] = (min(1.0, 2 * p) for p in (forward, backward))
    corrected, turned = holm(worse), holm(better)
    return {place: RowTest(plain[place], corrected[place], turned[place]) for place in plain}


def _compare(ours: Sequence[JobResult], theirs: Sequence[JobResult]) -> tuple[float, float, float]:
    """(t-test, test to be corrected, test of the other direction) of "ours is better"."""
    one, two = by_split(ours), by_split(theirs)
    splits = shared_splits(ours, theirs)
    if len(splits) == 1:
        a, b = one[splits[0]], two[splits[0]]
        count = min(len(a), len(b))  # full fine-tuning may have the first of the shared episodes only
        first, second = tuple(a[:count]), tuple(b[:count])
        forward, backward = _paired_test(first, second), _paired_test(second, first)
        return forward.t_p, forward.permutation_p, backward.permutation_p
    means = [[sum(values[split]) / len(values[split]) for split in splits] for values in (one, two)]
    ratio = class_ratio([result for result in ours if result.split_name in splits])
    noise = episode_noise([(one[split], two[split]) for split in splits])
    forward_p = split_test(means[0], means[1], ratio, noise)
    return forward_p, forward_p, split_test(means[1], means[0], ratio, noise)


def episode_noise(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """Variance of a split's mean difference that comes of its episodes, the mean over the splits."""
    found = []
    for first, second in pairs:
        count = min(len(first), len(second))  # full fine-tuning may have the first of the shared episodes only
        differences = np.subtract(first[:count], second[:count])
        found.append(float(differences.var(ddof=1)) / count if count > 1 else 0.0)
    return sum(found) / len(found)


def shared_splits(ours: Sequence[JobResult], theirs: Sequence[JobResult]) -> list[str]:
    """The splits that both have."""
    there = {result.split_name for result in theirs}
    return list(dict.fromkeys(result.split_name for result in ours if result.split_name in there))


def by_split(found: Sequence[JobResult]) -> dict[str, list[float]]:
    """Each split's accuracies by episode, averaged over the seeds."""
    splits: dict[str, list[list[float]]] = {}
    for result in found:
        splits.setdefault(result.split_name, []).append(result.accuracies)
    return {name: [sum(column) / len(column) for column in zip(*seeds, strict=True)] for name, seeds in splits.items()}


def class_ratio(found: Sequence[JobResult]) -> float:
    """Test classes / training classes, the mean over the splits; for the corrected variance."""
    ratios = [result.test_classes / result.train_classes for result in found]
    return sum(ratios) / len(ratios)


def cell_interval(found: Sequence[JobResult]) -> Interval:
    """Over episodes (seeds averaged) with one split; over split means, with corrected variance, with several."""
    splits = by_split(found)
    if len(splits) == 1:
        return mean_interval(next(iter(splits.values())))
    return split_interval([sum(values) / len(values) for values in splits.values()], class_ratio(found))


@lru_cache(maxsize=4096)  # tables are written again and again while a comparison grows
def _paired_test(first: tuple[float, ...], second: tuple[float, ...]) -> PairedTest:
    return paired_test(first, second)

"""The choice of rows: against a literal greedy loop, and what must hold for any pile."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmin.labelling.selection import NEAR_DUPLICATE, choose_rows, neighbour_agreement, uncertainty
from dmin.labelling.vectors import centred


def clusters(sizes: list[int], width: int = 16, noise: float = 0.15, seed: int = 0) -> tuple[Any, Any]:
    """Unit vectors [n, d] around random directions, and the cluster of each."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(len(sizes), width))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    rows = centres[labels] / np.linalg.norm(centres[labels], axis=1, keepdims=True)
    rows = rows + noise * generator.normal(size=rows.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32), labels


def literal(vectors: Any, known: Any, weights: Any, taken: list[int], count: int, power: float) -> list[int]:
    """The greedy rule as loops: add the row that raises the weighted coverage most."""

    def similar(one: Any, two: Any) -> float:
        return float(max(0.0, float(one @ two)) ** power)

    chosen: list[int] = []
    while len(chosen) < count:
        best, highest = None, -1.0
        for row in range(len(vectors)):
            others = [vectors[place] for place in chosen] + list(known)
            if row in taken or row in chosen or any(float(vectors[row] @ other) > NEAR_DUPLICATE for other in others):
                continue
            gain = 0.0
            for place in range(len(vectors)):
                before = max([similar(vectors[place], other) for other in others], default=0.0)
                gain += weights[place] * max(0.0, similar(vectors[place], vectors[row]) - before)
            if gain > highest + 1e-7:
                best, highest = row, gain
        if best is None:
            break
        chosen.append(best)
    return chosen


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), power=st.sampled_from([1.0, 2.0, 3.5]), known=st.integers(0, 3))
def test_the_choice_is_that_of_the_literal_greedy_loop(seed: int, power: float, known: int) -> None:
    vectors, _ = clusters([6, 9, 4], seed=seed, noise=0.4)
    weights = np.random.default_rng(seed).uniform(0.1, 1, len(vectors))
    labelled, taken = vectors[:known], list(range(known))
    found = choose_rows(vectors, 5, known=labelled, weights=weights, taken=taken, power=power)
    assert list(found.rows) == literal(vectors, labelled, weights, taken, 5, power)


def test_each_region_gets_one_and_the_largest_comes_first() -> None:
    vectors, labels = clusters([60, 20, 5, 40])
    found = choose_rows(vectors, 4)
    assert labels[list(found.rows)].tolist()[0] == 0 and sorted(labels[list(found.rows)]) == [0, 1, 2, 3]
    assert sorted(found.stands_for) == [5, 20, 40, 60] and sum(found.stands_for) == len(vectors)


def test_what_is_labelled_is_not_chosen_again() -> None:
    vectors, labels = clusters([60, 20, 5, 40], noise=0.03)
    known = [int(np.flatnonzero(labels == place)[0]) for place in (0, 3)]
    found = choose_rows(vectors, 2, known=vectors[known], taken=known)
    assert sorted(labels[list(found.rows)]) == [1, 2]


def test_uncertain_regions_come_before_settled_ones() -> None:
    vectors, labels = clusters([50, 50, 50], noise=0.3)
    weights = np.where(labels == 1, 1.0, 0.01)
    assert set(labels[list(choose_rows(vectors, 3, weights=weights).rows)]) == {1}


def test_near_duplicates_are_chosen_once() -> None:
    vectors, _ = clusters([3, 3], noise=0.0)
    assert len(choose_rows(vectors, 6).rows) == 2
    assert choose_rows(vectors, 6, known=vectors[:1]).rows == (3,)


def test_uncertainty_is_high_between_and_far_from_the_classes() -> None:
    vectors, labels = clusters([30, 30, 30], noise=0.1)
    known = [0, 1, 30, 31]
    middle = centred(vectors[:1] + vectors[30:31], np.zeros(16, np.float32))
    for measure in ("least", "margin"):
        found = uncertainty(np.concatenate([vectors, middle]), vectors[known], labels[known].tolist(), measure=measure)
        assert found[labels.tolist().index(2) : -1].mean() > 2 * found[:60].mean() and found[-1] > 2 * found[:60].mean()
    assert uncertainty(vectors, vectors[:2], ["a", "a"]).tolist() == [1.0] * 90


def test_a_large_pile_is_sampled_by_weight_and_the_choice_is_reproducible() -> None:
    vectors, labels = clusters([9000, 2500, 500], noise=0.1)
    weights = np.where(labels == 2, 1.0, 0.02)
    start = time.perf_counter()
    found = choose_rows(vectors, 3, weights=weights, seed=1)
    assert time.perf_counter() - start < 20
    assert 2 in labels[list(found.rows)[:1]] and found == choose_rows(vectors, 3, weights=weights, seed=1)
    assert sum(found.stands_for) == 12_000  # counted over the whole pile, not the sample
    assert not set(choose_rows(vectors, 3, taken=list(range(9000)), known=vectors[:5]).rows) & set(range(9000))


@pytest.mark.parametrize("rows", [1, 2])
def test_a_pile_of_one_direction_gives_no_error(rows: int) -> None:
    vectors = centred(np.ones((rows, 4), np.float32))
    assert len(choose_rows(vectors, 5).rows) >= 1


def test_neighbours_agree_where_classes_follow_the_regions() -> None:
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(4, 16))
    where = generator.integers(4, size=500)
    vectors = centred((centres[where] + 0.3 * generator.normal(size=(500, 16))).astype(np.float32))
    assert neighbour_agreement(vectors, where) > 0.95
    assert abs(neighbour_agreement(vectors, generator.integers(4, size=500))) < 0.1
    sides = np.array([[1, 0], [1, 0.1], [-1, 0], [-1, 0.1]], np.float32)
    assert neighbour_agreement(sides, np.array([0, 0, 1, 1])) == 1
    assert neighbour_agreement(sides, np.array([0, 1, 0, 1])) == -1
    assert neighbour_agreement(sides[:1], np.array([0])) == 0  # one text has no neighbour
    assert neighbour_agreement(sides, np.zeros(4, int)) == 0  # one answer for all: no better than chance

"""The adaptive head on bare vectors."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dmin.adaptive import Recipe, Spread, fit_head
from tests.adaptive.common import WIDTH, clusters, fitted, spread

QUERIES = clusters(7, 9, seed=5).reshape(-1, WIDTH)


def test_torch_is_not_needed() -> None:
    code = (
        "import sys, numpy as np\n"
        "from dmin.adaptive import Recipe, Spread, fit_head\n"
        "rows = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)\n"
        "head = fit_head(Recipe(), [Spread.flat(8)], rows, [3, 3], [False, False])\n"
        "assert head.scores(head.view(rows)).shape == (6, 2)\n"
        "head.with_class(rows[:2], False).without_class(0).shares(head.view(rows)[0], 1)\n"
    )
    code += "assert 'torch' not in sys.modules, 'torch was imported'\n"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("named", [False, True])
def test_numpy_and_torch_agree(named: bool) -> None:
    vectors = clusters(5, 4)
    plain, on_torch = fitted(vectors, named), fitted(torch.from_numpy(vectors), named)
    scores = on_torch.scores(on_torch.view(torch.from_numpy(QUERIES)))
    assert isinstance(scores, torch.Tensor)
    assert np.allclose(scores.numpy(), plain.scores(plain.view(QUERIES)), atol=1e-3)
    more = clusters(1, 3, seed=8)[0]
    grown = on_torch.with_class(torch.from_numpy(more), named).without_class(1)
    expected = plain.with_class(more, named).without_class(1)
    found = grown.scores(grown.view(torch.from_numpy(QUERIES))).numpy()
    assert np.allclose(found, expected.scores(expected.view(QUERIES)), atol=1e-3)


@pytest.mark.parametrize(("classes", "size"), [(2, 1), (4, 6), (30, 5)])
def test_the_logistic_part_is_that_of_scikit_learn(classes: int, size: int) -> None:
    from sklearn.linear_model import LogisticRegression

    head = fitted(clusters(classes, size))
    queries = head.view(QUERIES)
    labels = np.repeat(np.arange(classes), size)
    model = LogisticRegression(C=10, fit_intercept=False, tol=1e-10, max_iter=10_000)
    model.fit(head.rows.astype(np.float64), labels, sample_weight=head.weights)
    expected = model.decision_function(queries.astype(np.float64))
    found = head.logits(queries)
    if classes == 2:  # scikit-learn fits one column, the difference of two of half the norm each
        model = LogisticRegression(C=20, fit_intercept=False, tol=1e-10, max_iter=10_000)
        expected = model.fit(head.rows.astype(np.float64), labels).decision_function(queries)
        found = found[:, 1] - found[:, 0]
    assert np.abs(found - expected).max() < 1e-3


@given(seed=st.integers(0, 1000), classes=st.integers(2, 9), size=st.integers(1, 6), named=st.booleans())
@settings(max_examples=15, deadline=None)
def test_the_order_of_classes_changes_nothing(seed: int, classes: int, size: int, named: bool) -> None:
    vectors = clusters(classes, size, seed)
    order = np.random.default_rng(seed).permutation(classes)
    plain, other = fitted(vectors, named), fitted(vectors[order], named)
    assert np.array_equal(other.scores(other.view(QUERIES)), plain.scores(plain.view(QUERIES))[:, order])


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("classes", [2, 63, 64, 70])
def test_a_change_of_one_class_moves_no_other_score(classes: int, named: bool) -> None:
    vectors = clusters(classes + 1, 5)
    head = fitted(vectors[:-1], named)
    queries = head.view(QUERIES)
    before = head.scores(queries)
    grown = head.with_class(vectors[-1], named)
    assert np.array_equal(grown.scores(queries)[:, :-1], before)
    assert grown.scores(queries)[:, -1].std() > 0
    smaller = grown.without_class(classes)
    assert np.array_equal(smaller.scores(queries), before) and smaller.rows.shape == head.rows.shape
    assert np.array_equal(head.without_class(0).scores(queries), before[:, 1:])
    more = np.concatenate([vectors[1, :4], clusters(1, 3, seed=3)[0], vectors[1, 4:]])
    added = head.with_rows(1, more, named, [0, 1, 2, 3, -1, -1, -1, 4])
    assert np.array_equal(np.delete(added.scores(queries), 1, axis=1), np.delete(before, 1, axis=1))
    assert not np.allclose(added.scores(queries)[:, 1], before[:, 1], atol=1e-3)
    fewer = head.with_rows(1, vectors[1, 1:], named, [1, 2, 3, 4])
    assert np.array_equal(np.delete(fewer.scores(queries), 1, axis=1), np.delete(before, 1, axis=1))
    expected = [head.without(query, 1, 0)[1] for query in queries]
    assert np.allclose(fewer.scores(queries)[:, 1], expected, atol=1e-4)


def test_an_added_class_scores_about_like_one_that_was_fitted() -> None:
    vectors = clusters(12, 6)
    queries = clusters(12, 40)[:, 6:].reshape(-1, WIDTH)
    truth = np.repeat(np.arange(12), 34)
    whole, grown = fitted(vectors), fitted(vectors[:-1]).with_class(vectors[-1], False)
    right = [(head.scores(head.view(queries)).argmax(axis=1) == truth).mean() for head in (whole, grown)]
    assert right[0] > 0.7 and abs(right[0] - right[1]) < 0.03


@pytest.mark.parametrize("named", [False, True])
def test_shares_add_up_to_the_score(named: bool) -> None:
    head = fitted(clusters(6, 4), named)
    grown = head.with_class(clusters(1, 2, seed=4)[0], named).without_class(2).without_class(0)
    for found in (head, grown, replace(head, dual=None, primal=None)):
        queries = found.view(QUERIES)
        scores = found.scores(queries)
        for number, query in enumerate(queries[:10]):
            for column in range(len(found.sizes)):
                parts, rest = found.shares(query, column)
                assert parts.sum() + rest == pytest.approx(scores[number, column], abs=1e-5)
                assert (abs(rest) > 1e-5) == (found is grown)


def test_cosines_lie_between_minus_one_and_one_and_do_not_depend_on_other_queries() -> None:
    head = fitted(clusters(6, 4))
    queries = head.view(QUERIES)
    cosines = head.cosines(queries)
    assert np.abs(cosines).max() <= 1 + 1e-6
    assert np.allclose(head.cosines(queries[3:4]), cosines[3:4], atol=1e-6)
    assert head.cosines(queries[:0]).shape == (0, 6) and head.scores(queries[:0]).shape == (0, 6)


def test_above_a_number_of_classes_the_logistic_part_is_left_out() -> None:
    vectors = clusters(5, 3)
    head = fitted(vectors, recipe=Recipe(most_classes=4))
    queries = head.view(QUERIES)
    assert head.dual is None and head.logits(queries) is None
    assert np.allclose(head.scores(queries), 8 * head.cosines(queries))
    assert np.array_equal(head.with_class(vectors[0], False).scores(queries)[:, :5], head.scores(queries))


@pytest.mark.parametrize("many", [16, 70])
def test_more_examples_of_some_classes_do_not_harm_the_others(many: int) -> None:
    """Ten of twenty classes are raised from 2 to many examples; the others keep their accuracy within a point."""
    vectors = clusters(20, 120, seed=2, noise=1.2)
    queries, truth = vectors[:, 70:].reshape(-1, WIDTH), np.repeat(np.arange(20), 50)

    def accuracy(sizes: list[int]) -> float:
        rows = np.concatenate([vectors[column, :size] for column, size in enumerate(sizes)])
        head = fit_head(Recipe(), [spread()], rows, sizes, [False] * 20)
        right = head.scores(head.view(queries)).argmax(axis=1) == truth
        return float(right[truth >= 10].mean())

    even = accuracy([2] * 20)
    assert 0.2 < even < 0.9
    assert accuracy([many] * 10 + [2] * 10) > even - 0.01


def test_small_and_degenerate_tasks_have_finite_scores() -> None:
    vectors = clusters(3, 3)
    same = np.repeat(vectors[:1, :1], 2, axis=0)
    for rows, sizes, named in (
        (vectors[0, :1], [1], [False]),
        (same.reshape(-1, WIDTH), [1, 1], [False, False]),
        (vectors[:2, 0], [1, 1], [True, True]),
        (vectors[0, :3], [1, 2], [True, False]),
        (np.zeros((2, WIDTH), np.float32), [1, 1], [False, False]),
    ):
        head = fit_head(Recipe(), [spread()], rows, sizes, named)
        assert np.isfinite(head.scores(head.view(QUERIES))).all()


def test_encoders_stand_side_by_side() -> None:
    one, two = clusters(4, 5), clusters(4, 5, seed=6)
    both = np.concatenate([one, 100 * two], axis=2).reshape(-1, 2 * WIDTH)  # norms do not matter
    head = fit_head(Recipe(), [spread(), Spread.flat(WIDTH)], both, [5] * 4, [False] * 4)
    assert np.allclose(np.linalg.norm(head.rows, axis=1), 1, atol=1e-5)
    assert np.allclose(np.linalg.norm(head.rows[:, :WIDTH], axis=1), 0.5**0.5, atol=1e-5)

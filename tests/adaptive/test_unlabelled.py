"""Learning from unlabelled texts on bare vectors: graph, votes, what they may and may not move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dmin.adaptive import Head, learn_unlabelled
from dmin.adaptive.graph import neighbour_graph
from dmin.adaptive.index import candidate_scores
from dmin.adaptive.unlabelled import (
    AGREEMENT,
    EVENING,
    LEAST,
    NEIGHBOURS,
    agreement,
    between,
    coverage,
    evened,
    scale_of,
    softmax,
    spread_labels,
)  # fmt: skip
from tests.adaptive.common import WIDTH, clusters, fitted

CLASSES = 5
EVERY = clusters(CLASSES, 63, seed=3, noise=1.6)
EXAMPLES, PILE, NEW = EVERY[:, :3], EVERY[:, 3:33].reshape(-1, WIDTH), EVERY[:, 33:].reshape(-1, WIDTH)
TRUTH = np.repeat(np.arange(CLASSES), 30)


@pytest.fixture(scope="module")
def plain() -> Head:
    return fitted(EXAMPLES)


@pytest.fixture(scope="module")
def adapted(plain: Head) -> Head:
    return learn_unlabelled(plain, PILE)


def accuracy(head: Head, vectors: Any) -> float:
    return float((head.scores(head.view(vectors)).argmax(axis=1) == TRUTH).mean())


def test_texts_of_the_pile_and_new_ones_gain(plain: Head, adapted: Head) -> None:
    assert adapted.voters is not None and len(adapted.voters.rows) == len(plain.rows) + len(PILE)
    assert accuracy(adapted, PILE) > accuracy(plain, PILE) + 0.02
    assert accuracy(adapted, NEW) > accuracy(plain, NEW) + 0.02


def test_cosines_stay_as_they_are(plain: Head, adapted: Head) -> None:
    assert np.array_equal(plain.cosines(plain.view(NEW)), adapted.cosines(adapted.view(NEW)))


def test_a_text_of_the_pile_gets_its_own_vote_and_a_new_one_those_around_it(adapted: Head) -> None:
    voters = adapted.voters
    assert voters is not None
    votes, scale = voters(adapted.view(PILE))
    places = len(adapted.rows) + np.arange(len(PILE))
    assert np.allclose(votes, voters.of_own * voters.labels[:, places].T)
    assert np.all(scale == np.float32(voters.own_scale))
    near = adapted.view(NEW[:1]) @ voters.rows.T  # [1, m]
    weights = np.exp(16 * (near - 1))
    expected = voters.of_new * (weights @ voters.labels.T) / weights.sum()
    votes, scale = voters(adapted.view(NEW[:1]))
    assert np.allclose(votes, expected, atol=1e-4) and scale[0, 0] == np.float32(voters.scale)


def test_others_are_all_but_the_voter_itself(adapted: Head) -> None:
    voters = adapted.voters
    assert voters is not None
    near = voters.rows @ voters.rows[4]
    weights = np.exp(16 * (near - 1))
    weights[4] = 0
    expected = voters.of_new * (voters.labels @ weights) / weights.sum()
    assert np.allclose(voters.of_others(np.array([4]))[0], expected, atol=1e-4)


def test_a_class_that_comes_or_goes_moves_no_other_score(adapted: Head) -> None:
    queries = adapted.view(NEW)
    before = adapted.scores(queries)
    grown = adapted.with_class(clusters(1, 3, seed=8)[0], False)
    assert np.array_equal(grown.scores(queries)[:, :CLASSES], before)
    assert np.array_equal(grown.without_class(CLASSES).scores(queries), before)
    kept = [0, 1, 3, 4]
    assert np.array_equal(adapted.without_class(2).scores(queries), before[:, kept])
    other = adapted.with_rows(1, EVERY[1, :2], False, [0, 1])
    assert np.array_equal(other.scores(queries)[:, [0, 2, 3, 4]], before[:, [0, 2, 3, 4]])


def test_a_class_that_is_added_is_not_outvoted(plain: Head, adapted: Head) -> None:
    more = clusters(1, 40, seed=8, noise=0.9)[0]
    queries = more[3:]
    recall = {
        name: (head.with_class(more[:3], False).scores(head.view(queries)).argmax(axis=1) == CLASSES).mean()
        for name, head in (("plain", plain), ("adapted", adapted))
    }
    assert recall["plain"] > 0.7 and recall["adapted"] > recall["plain"] - 0.1
    pile = np.concatenate([PILE, queries])  # where its texts were in the pile before anybody knew the class
    among = learn_unlabelled(plain, pile).with_class(more[:3], False)
    assert (among.scores(among.view(queries)).argmax(axis=1) == CLASSES).mean() > recall["plain"] - 0.15


def test_a_corrected_text_of_the_pile_is_answered_as_corrected(adapted: Head) -> None:
    truth = np.repeat(np.arange(CLASSES), 30)
    wrong = np.flatnonzero(adapted.scores(adapted.view(PILE)).argmax(axis=1) != truth)[:8]
    assert len(wrong) >= 3
    right = 0
    for place in wrong:
        column = int(truth[place])
        rows = np.concatenate([EXAMPLES[column], PILE[place : place + 1]])
        corrected = adapted.with_rows(column, rows, False, [0, 1, 2, -1])
        right += int(corrected.scores(corrected.view(PILE[place : place + 1])).argmax() == column)
    assert right >= len(wrong) - 1


def test_shares_add_up_to_the_score(adapted: Head) -> None:
    queries = adapted.view(np.concatenate([NEW[:4], PILE[:2]]))
    scores = adapted.scores(queries)
    for query, row in zip(queries, scores, strict=True):
        for column in range(CLASSES):
            parts, rest = adapted.shares(query, column)
            assert parts.sum() + rest == pytest.approx(row[column], abs=1e-4)


def test_without_a_row_the_votes_stay(adapted: Head) -> None:
    query = adapted.view(NEW[:1])[0]
    voters = adapted.voters
    assert voters is not None
    cosine, score = adapted.without(query, 0, 1)
    assert adapted.dual is not None and adapted.primal is not None
    logit = float(adapted.primal[0] @ query - adapted.dual[1, 0] * (adapted.rows[1] @ query))
    votes, scale = voters(query[None, :])
    assert score == pytest.approx(float(scale[0, 0] * (8 * cosine + logit + votes[0, 0])), abs=1e-4)


def test_numpy_and_torch_agree(adapted: Head) -> None:
    on_torch = learn_unlabelled(fitted(torch.from_numpy(EXAMPLES)), torch.from_numpy(PILE))
    found = on_torch.scores(on_torch.view(torch.from_numpy(NEW)))
    assert isinstance(found, torch.Tensor)
    assert np.allclose(found.numpy(), adapted.scores(adapted.view(NEW)), atol=2e-3)


def test_candidates_of_an_index_are_scored_with_the_votes(adapted: Head) -> None:
    queries = adapted.view(np.concatenate([NEW[:9], PILE[:3]]))
    columns = np.argsort(-adapted.scores(queries), axis=1)[:, :2]
    _, found = candidate_scores(adapted, queries, columns)
    assert np.allclose(found, np.take_along_axis(adapted.scores(queries), columns, axis=1), atol=1e-4)


def test_it_is_about_as_sure_as_it_is_right(plain: Head, adapted: Head) -> None:
    sure = softmax(adapted.scores(adapted.view(NEW))).max(axis=1).mean()
    assert abs(sure - accuracy(adapted, NEW)) < abs(softmax(plain.scores(plain.view(NEW))).max(axis=1).mean()
                                                    - accuracy(plain, NEW)) + 0.05  # fmt: skip


def test_where_neighbours_disagree_nobody_votes(plain: Head) -> None:
    noise = np.random.default_rng(0).normal(size=(150, WIDTH)).astype(np.float32) + 2.0
    texts = plain.view(noise)
    start = np.concatenate([np.eye(CLASSES)[np.repeat(np.arange(CLASSES), 3)], softmax(plain.scores(texts))])
    agreed = agreement(
        neighbour_graph(np.concatenate([plain.rows, texts]), NEIGHBOURS), start.astype(np.float32), len(plain.rows)
    )
    found = learn_unlabelled(plain, noise)
    assert agreed < 0.75 and (found.voters is None) == (agreed <= AGREEMENT[0])


def test_a_pile_of_one_class_has_no_say_on_new_texts(plain: Head) -> None:
    found = learn_unlabelled(plain, EXAMPLES[0].mean(axis=0) + 0.1 * EVERY[1, 3:33])
    assert found.voters is not None and not found.voters.of_new.any() and found.voters.of_own.any()
    assert accuracy(found, NEW) > accuracy(plain, NEW) - 0.02


@pytest.mark.parametrize(("value", "share"), [(0.0, 0.0), (0.6, 0.0), (0.75, 0.5), (0.9, 1.0), (1.2, 1.0)])
def test_how_far_a_value_lies_between_two(value: float, share: float) -> None:
    assert between(value, 0.6, 0.9) == pytest.approx(share)


def test_coverage_is_the_part_of_the_classes_that_have_texts() -> None:
    assert coverage(np.eye(4)) == pytest.approx(1.0)
    assert coverage(np.eye(4)[[0, 0, 0]]) == pytest.approx(0.25)
    assert coverage(np.eye(4)[[0, 1]]) == pytest.approx(0.5)


def test_of_an_uneven_pile_large_classes_vote_less() -> None:
    many, few = evened(np.array([30.0, 10.0]), EVENING)
    assert many / few == pytest.approx(3.0**-EVENING)
    assert evened(np.array([99.0, 1.0]), EVENING)[1] == pytest.approx(LEAST**-EVENING)  # hardly any get no more
    assert evened(np.array([30.0, 10.0]), 0.0).tolist() == [1, 1]


def test_labels_come_from_the_neighbours() -> None:
    nodes = np.eye(4, dtype=np.float32)[[0, 0, 1, 1]] + 0.01
    nodes /= np.linalg.norm(nodes, axis=1, keepdims=True)
    start = np.array([[1, 0], [0.4, 0.6], [0, 1], [0.6, 0.4]], np.float32)
    found = spread_labels(neighbour_graph(nodes, NEIGHBOURS), start)
    assert np.allclose(found.sum(axis=1), 1, atol=1e-6)
    assert found[1].argmax() == 0 and found[3].argmax() == 1


def test_the_scale_is_where_the_mean_probability_is_reached() -> None:
    scores = np.random.default_rng(1).normal(size=(200, 6)) * 5
    for wanted in (0.4, 0.6, 0.8):
        assert softmax(scale_of(scores, wanted) * scores).max(axis=1).mean() == pytest.approx(wanted, abs=1e-3)
    assert scale_of(scores, 1.0) == pytest.approx(1.0, abs=1e-4)  # never sharper than the scores are


def test_nothing_to_learn_from_changes_nothing(plain: Head) -> None:
    assert learn_unlabelled(plain, PILE[:0]) is plain

"""search="index": candidates by an approximate index, scored exactly."""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import numpy as np
import pytest

from dmin import FewShotClassifier
from dmin.adaptive.index import CANDIDATES, candidate_scores
from dmin.errors import ConfigError

CLASSES, WIDTH = 3000, 32


def vectors(seed: int, noise: float = 0.6) -> np.ndarray:
    """A vector of each class [C, d]: a centre of its own, and noise."""
    centres = np.random.default_rng(0).standard_normal((CLASSES, WIDTH))
    return (centres + noise * np.random.default_rng(seed).standard_normal(centres.shape)).astype(np.float32)


@pytest.fixture(scope="module")
def examples() -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([vectors(seed) for seed in (1, 2, 3)]), np.tile(np.arange(CLASSES), 3)


@pytest.fixture(scope="module")
def exact(examples) -> FewShotClassifier:
    with pytest.warns(UserWarning, match="logistic part"):
        return FewShotClassifier("adaptive", encoder="precomputed").fit(*examples)


def indexed(examples) -> FewShotClassifier:
    with pytest.warns(UserWarning, match="logistic part"):
        return FewShotClassifier("adaptive", encoder="precomputed", search="index").fit(*examples)


@pytest.fixture(scope="module")
def fitted(examples) -> FewShotClassifier:
    return indexed(examples)


def test_it_answers_like_exact_search(fitted, exact) -> None:
    asked = vectors(9)[:500]
    answers, expected = fitted.answer(asked, k=3), exact.answer(asked, k=3)
    same = [one.label == two.label for one, two in zip(answers, expected, strict=True)]
    assert np.mean(same) >= 0.98
    for one, two in zip(answers, expected, strict=True):
        if one.label == two.label:
            assert one.score == pytest.approx(two.score, abs=1e-5)
            assert one.decision == pytest.approx(two.decision, abs=1e-4)
    np.testing.assert_allclose(fitted.decision_function(asked[:5]), exact.decision_function(asked[:5]), atol=1e-5)


def test_candidates_are_scored_as_the_head_scores_them(fitted) -> None:
    head = fitted.state_.model.head
    rows = head.view(vectors(8)[:70])
    columns = np.random.default_rng(1).integers(0, CLASSES, (70, CANDIDATES))
    columns[3, 4] = -1
    cosines, scores = candidate_scores(head, rows, columns)
    assert cosines[3, 4] == scores[3, 4] == -np.inf
    known = columns >= 0
    expected = np.take_along_axis(np.asarray(head.scores(rows)), np.maximum(columns, 0), axis=1)
    np.testing.assert_allclose(scores[known], expected[known], rtol=0, atol=1e-4)


def test_with_names_and_the_logistic_part_too() -> None:
    names = {f"{word} {kind}": [f"{word} {kind} {more}" for more in ("now", "please")] for word in ("send", "pay", "stop")
             for kind in ("card", "loan", "bill")}  # fmt: skip
    one, two = (FewShotClassifier(search=search).fit(names) for search in ("exact", "index"))
    asked = ["pay the bill", "stop my card", "send me the loan"]
    for left, right in zip(one.answer(asked, 2), two.answer(asked, 2), strict=True):
        assert left.label == right.label
        assert left.decision == pytest.approx(right.decision, abs=1e-4)
        assert left.probability == pytest.approx(right.probability, abs=1e-4)  # all classes are candidates


def test_classes_come_and_go(examples) -> None:
    classifier = indexed(examples)
    before = classifier.predict(vectors(9)[:50])
    new = np.random.default_rng(7).standard_normal((3, WIDTH)).astype(np.float32) * 0.05 + 5
    snapshot = classifier.state_
    classifier.add_class(-5, new)
    assert classifier.predict(new).tolist() == [-5] * 3
    older = snapshot.model.index.candidates(snapshot.model.head.view(new))
    assert older.max() < CLASSES  # a state from before does not see it
    assert classifier.predict(vectors(9)[:50]).tolist() == before.tolist()
    classifier.remove_example(0, vectors(1)[0])
    classifier.add_examples(0, -new[:1])
    assert classifier.predict(-new).tolist() == [0] * 3
    classifier.remove_class(-5)
    classifier.remove_class(1)
    found = classifier.predict(np.concatenate([new, vectors(9)[1:2], vectors(9)[40:50]]))
    assert not {-5, 1} & set(found.tolist())
    assert found[4:].tolist() == before[40:50].tolist()


def test_two_changes_of_one_state_do_not_disturb_each_other(examples) -> None:
    head = indexed(examples).state_.model.head
    assert head.room is not None
    start = np.array(head.rows)
    one, two = (head.with_class(np.full((2, WIDTH), value, np.float32), False) for value in (3.0, -3.0))
    np.testing.assert_array_equal(head.rows, start)
    np.testing.assert_array_equal(one.rows[: len(start)], two.rows[: len(start)])
    assert float(one.rows[-1] @ two.rows[-1]) < 0.5
    np.testing.assert_array_equal(
        one.with_class(np.ones((1, WIDTH), np.float32), False).rows[: len(one.rows)], one.rows
    )


def test_saved_loaded_and_pickled_it_has_the_same_graph(fitted, tmp_path: Path) -> None:
    asked = vectors(9)[:100]
    fitted.save(tmp_path / "saved")
    loaded = FewShotClassifier.load(tmp_path / "saved")
    assert loaded.search == "index"
    for other in (loaded, pickle.loads(pickle.dumps(fitted))):  # noqa: S301
        assert other.answer(asked) == fitted.answer(asked)


def test_an_exact_classifier_is_saved_as_before(exact, tmp_path: Path) -> None:
    exact.save(tmp_path / "saved")
    assert '"search"' not in (tmp_path / "saved" / "classifier.json").read_text()
    assert FewShotClassifier.load(tmp_path / "saved").search == "exact"


def test_refusal_goes_by_the_same_cosine(fitted, exact) -> None:
    asked = vectors(9)[:50]
    cosines = [answer.score for answer in fitted.answer(asked)]
    fitted.reject = float(np.median(cosines))
    try:
        assert [answer.refused for answer in fitted.answer(asked)] == [cosine < fitted.reject for cosine in cosines]
    finally:
        fitted.reject = None


def test_adding_a_class_does_not_copy_the_others(examples) -> None:
    classifier = indexed(examples)
    classifier.add_class(-1, vectors(4)[:2] + 3)
    buffer = classifier.state_.model.head.rows.base
    start = time.process_time()
    for number in range(10):
        classifier.add_class(-2 - number, vectors(5)[2 * number : 2 * number + 2] - 3)
    assert classifier.state_.model.head.rows.base is buffer
    assert (time.process_time() - start) / 10 < 0.2


def test_what_cannot_have_an_index_says_so() -> None:
    texts = {"a b": ["c d"], "e f": ["g h"]}
    for options in (
        {"search": "fast"},
        {"model": "nearest", "search": "index"},
        {"encoder": "cascade", "search": "index"},
    ):
        with pytest.raises(ConfigError, match="search"):
            FewShotClassifier(**options).fit(texts)

"""The default classifier: the adaptive head that decides, what changes leave alone, what is saved."""

from __future__ import annotations

import json
import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dmin import FewShotClassifier
from dmin.adaptive import Recipe
from dmin.classifier import fitting
from dmin.errors import ConfigError, DataError, ModelError
from dmin.files import write_manifest
from tests.classifier.common import EXAMPLES, letters

TEXTS = ["some text", "my money back", "will it rain", "where is the package"]
FIXTURES = Path(__file__).parents[1] / "fixtures" / "version-0.1"


def adaptive(**options: Any) -> FewShotClassifier:
    """The adaptive head on counts of letters."""
    return FewShotClassifier("adaptive", encoder=letters, **{"use_names": False} | options)


@pytest.fixture
def classifier() -> FewShotClassifier:
    return adaptive().fit(EXAMPLES)


def test_the_largest_deciding_score_is_the_answer_and_the_cosine_is_reported(classifier: FewShotClassifier) -> None:
    scores, answers = classifier.decision_function(TEXTS), classifier.answer(TEXTS, k=2)
    assert classifier.predict(TEXTS).tolist() == classifier.classes_[scores.argmax(axis=1)].tolist()
    state = classifier.state_
    cosines = state.cosines(state.vectors(TEXTS))
    for number, found in enumerate(answers):
        best = scores[number].argmax()
        assert found.score == pytest.approx(cosines[number, best]) and abs(found.score) <= 1
        assert found.decision == found.top[0][1] == pytest.approx(scores[number, best])
    proba = classifier.predict_proba(TEXTS)
    assert np.allclose(proba.sum(axis=1), 1) and (proba.argmax(axis=1) == scores.argmax(axis=1)).all()


def test_refusal_goes_by_the_cosine(classifier: FewShotClassifier) -> None:
    cosines = [found.score for found in classifier.answer(TEXTS)]
    cut = float(np.median(cosines))
    classifier.set_params(reject=cut, unknown_label="?")
    assert [found.refused for found in classifier.answer(TEXTS)] == [cosine < cut for cosine in cosines]
    refused = TEXTS[int(np.argmin(cosines))]
    found = classifier.explain(refused)
    assert found.label == "?" and found.cosine < cut and "refused: below" in str(found)


def test_shares_of_all_rows_add_up_to_the_deciding_score() -> None:
    classifier = adaptive(use_names=True).fit(
        {f"class {n}": [f"text {n} {m} {'x' * n}" for m in range(4)] for n in range(6)}
    )
    classifier.add_class("later", ["a later one"]).remove_class("class 2")
    for text in TEXTS:
        found = classifier.explain(text)
        assert sum(share.share for share in found.examples) == pytest.approx(found.score, abs=1e-5)
        assert found.score == pytest.approx(classifier.decision_function([text]).max(), abs=1e-5)
        assert [share.label for share in found.examples].count(found.label) == len(
            classifier.examples_[found.label]
        ) + 1
        assert "more examples of other classes" in str(found)


def test_changes_move_no_other_score_and_refit_is_a_fresh_fit(classifier: FewShotClassifier) -> None:
    before = classifier.decision_function(TEXTS)
    classifier.add_class("music", ["play a song", "some jazz"])
    assert np.array_equal(classifier.decision_function(TEXTS)[:, :3], before)
    classifier.add_examples("parcel", ["track my delivery"]).remove_example("parcel", "where is my order")
    after = classifier.decision_function(TEXTS)
    assert np.array_equal(after[:, [0, 2]], before[:, [0, 2]]) and not np.allclose(after[:, 1], before[:, 1])
    classifier.remove_class("weather")
    assert np.array_equal(classifier.decision_function(TEXTS)[:, 0], before[:, 0])
    fresh = adaptive().fit(classifier.examples_)
    assert not np.array_equal(classifier.decision_function(TEXTS), fresh.decision_function(TEXTS))
    assert np.array_equal(classifier.refit().decision_function(TEXTS), fresh.decision_function(TEXTS))


def test_what_grows_from_nothing_is_fitted_anew_until_it_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "SETTLED_CLASSES", 3)
    monkeypatch.setattr("dmin.classifier.learning.SETTLED_CLASSES", 3)
    growing = adaptive()
    for label, texts in EXAMPLES.items():
        growing.add_class(label, texts)
    at_once = adaptive().fit(EXAMPLES)
    expected = at_once.decision_function(TEXTS)
    assert np.array_equal(growing.decision_function(TEXTS), expected)
    growing.add_class("music", ["play a song"])
    assert np.array_equal(growing.decision_function(TEXTS)[:, :3], expected)


def test_a_saved_classifier_keeps_its_state_to_the_last_bit(classifier: FewShotClassifier, tmp_path: Path) -> None:
    classifier.add_class("music", ["play a song", "some jazz"]).remove_class("weather")  # not what a fit would give
    expected = classifier.decision_function(TEXTS)
    classifier.save(tmp_path / "saved")
    stored = json.loads((tmp_path / "saved" / "classifier.json").read_text())
    assert stored["model"] == "adaptive" and stored["fitted"]["settled"] is True
    loaded = FewShotClassifier.load(tmp_path / "saved", encoder=letters)
    assert np.array_equal(loaded.decision_function(TEXTS), expected)
    loaded.add_class("sport", ["who won the match"])
    assert np.array_equal(loaded.decision_function(TEXTS)[:, :3], expected)
    assert np.array_equal(pickle.loads(pickle.dumps(classifier)).decision_function(TEXTS), expected)  # noqa: S301


def test_a_classifier_saved_with_other_constants_is_fitted_anew_with_a_warning(
    classifier: FewShotClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier.save(tmp_path / "saved")
    path = tmp_path / "saved" / "classifier.json"
    head = json.loads(path.read_text())["head"]
    path.write_text(path.read_text().replace(head, "older"))
    write_manifest(tmp_path / "saved", "classifier")
    with pytest.warns(UserWarning, match="other constants of the head"):
        loaded = FewShotClassifier.load(tmp_path / "saved", encoder=letters)
    assert np.array_equal(loaded.decision_function(TEXTS), classifier.decision_function(TEXTS))


def test_many_classes_are_answered_by_class_vectors_with_a_warning(classifier: FewShotClassifier) -> None:
    state = classifier.state_
    setup = replace(state.model.setup, recipe=Recipe(most_classes=2))  # type: ignore[type-var]
    classifier._state = replace(state, model=replace(state.model, setup=setup))
    with pytest.warns(UserWarning, match="3 classes: above 2 the logistic part"):
        classifier.fit(EXAMPLES)
    state = classifier.state_
    assert np.allclose(classifier.decision_function(TEXTS), 8 * state.cosines(state.vectors(TEXTS)))
    assert np.allclose(classifier.predict_proba(TEXTS).sum(axis=1), 1)


def test_the_head_is_fitted_at_every_fit_of_a_copy(classifier: FewShotClassifier) -> None:
    other = clone(classifier).fit({"a": ["aaa", "abab"], "b": ["bbb"]})
    assert other.state_.model.head is not None and len(other.state_.model.head.sizes) == 2


@pytest.mark.parametrize("name", ["default", "nearest"])
def test_classifiers_of_version_0_1_answer_as_they_did(name: str) -> None:
    expected = json.loads((FIXTURES / "answers.json").read_text())[name]
    classifier = FewShotClassifier.load(FIXTURES / f"classifier-{name}", device="cpu")
    assert classifier.model == {"default": "dmin-plus", "nearest": "nearest"}[name]
    assert classifier.predict(expected["texts"]).tolist() == expected["predict"]
    assert np.allclose(classifier.decision_function(expected["texts"]), expected["decision"], atol=1e-5)
    assert np.allclose(classifier.predict_proba(expected["texts"]), expected["proba"], atol=1e-4)


def test_unlabelled_texts_help_and_leave_the_cosines_alone() -> None:
    random = np.random.default_rng(0)
    means = random.normal(size=(4, 1, 20))
    vectors = means + 1.3 * random.normal(size=(4, 230, 20))
    examples = {label: vectors[label, :2] for label in range(4)}
    pile, queries = vectors[:, 30:130].reshape(-1, 20), vectors[:, 130:].reshape(-1, 20)
    truth = np.repeat(np.arange(4), 100)
    plain = FewShotClassifier("adaptive", encoder="precomputed").fit(examples)
    adapted = clone(plain).fit(examples, unlabelled=pile)
    assert adapted.score(queries, truth) > plain.score(queries, truth) + 0.01  # texts that were not in the pile
    cosines = [found.score for found in plain.answer(queries[:9])]
    same = [
        i
        for i, (a, b) in enumerate(zip(plain.predict(queries[:9]), adapted.predict(queries[:9]), strict=True))
        if a == b
    ]
    assert [adapted.answer(queries[:9])[i].score for i in same] == [cosines[i] for i in same]
    found = adapted.explain(queries[0])
    assert sum(share.share for share in found.examples) == pytest.approx(found.score, abs=1e-5)
    assert "unlabelled texts" in found.examples[-1].text
    again = clone(plain).fit(examples).adapt(pile)
    assert np.array_equal(again.decision_function(queries), adapted.decision_function(queries))
    assert np.array_equal(adapted.refit().decision_function(queries), plain.decision_function(queries))


def test_what_was_learned_from_unlabelled_texts_is_saved(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    vectors = random.normal(size=(3, 1, 12)) + 0.7 * random.normal(size=(3, 60, 12))
    examples = {label: vectors[label, :2] for label in range(3)}
    classifier = FewShotClassifier("adaptive", encoder="precomputed").fit(
        examples, unlabelled=vectors[:, 2:40].reshape(-1, 12)
    )
    head = classifier.state_.model.head
    assert head is not None and head.voters is not None
    queries = vectors[:, 40:].reshape(-1, 12)
    classifier.save(tmp_path / "saved")
    loaded = FewShotClassifier.load(tmp_path / "saved", encoder="precomputed")
    assert np.array_equal(loaded.decision_function(queries), classifier.decision_function(queries))
    grown, expected = (one.add_class(3, -vectors[0, :2]).decision_function(queries) for one in (loaded, classifier))
    assert np.array_equal(grown, expected)
    setup = classifier.state_.model.setup
    assert setup is not None
    arrays, values = fitting.pack(head)
    with pytest.raises(ModelError, match="do not fit each other"):
        fitting.unpack(setup, arrays | {"voters.labels": arrays["voters.labels"][:, :-1]}, values)
    with pytest.raises(ModelError, match="do not fit each other"):
        fitting.unpack(setup, arrays, values | {"voters": {"scale": -1.0, "own_scale": 1.0}})


def test_nothing_to_learn_from_changes_nothing_and_one_string_is_no_pile(classifier: FewShotClassifier) -> None:
    adapted = clone(classifier).fit(EXAMPLES).adapt(TEXTS)
    before = adapted.decision_function(TEXTS)
    assert np.array_equal(adapted.adapt([]).decision_function(TEXTS), before)
    with pytest.raises(TypeError, match="a list of texts is needed, not one str"):
        adapted.adapt("one string")
    vectors = FewShotClassifier("adaptive", encoder="precomputed").fit({0: np.eye(3)[:1], 1: np.eye(3)[1:]})
    assert vectors.adapt(np.empty((0, 3))) is vectors


def test_a_classifier_that_lost_all_classes_learns_new_ones(classifier: FewShotClassifier) -> None:
    emptied = clone(classifier).fit(EXAMPLES).adapt(TEXTS)
    for label in EXAMPLES:
        emptied.remove_class(label)
    for label, texts in EXAMPLES.items():
        emptied.add_class(label, texts)
    expected = clone(classifier).fit(EXAMPLES)
    assert np.allclose(emptied.refit().decision_function(TEXTS), expected.decision_function(TEXTS), atol=1e-4)


def test_unlabelled_texts_need_the_default_head_and_a_fit() -> None:
    with pytest.raises(ConfigError, match="unlabelled texts need the default head: a nearest model"):
        FewShotClassifier("nearest", encoder=letters).fit(EXAMPLES, unlabelled=TEXTS)
    with pytest.raises(NotFittedError):
        adaptive().adapt(TEXTS)


def test_vectors_that_are_known_are_not_made_again(
    classifier: FewShotClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dmin.classifier.learning.MOST_TEXTS", 3)
    pile = [f"text {number}" for number in range(9)]
    expected = clone(classifier).fit(EXAMPLES).adapt(pile).decision_function(TEXTS)
    asked: list[str] = []

    def counted(texts: Any) -> Any:
        asked.extend(texts)
        return letters(texts)

    own = clone(classifier).set_params(encoder=counted).fit(EXAMPLES)
    found = own.adapt(pile, vectors=letters(pile)).decision_function(TEXTS)
    assert np.array_equal(found, expected) and not set(asked) & set(pile)
    for wrong in (letters(pile)[:4], letters(pile)[:, :5], letters(pile)[0]):
        with pytest.raises(DataError, match="vectors have the shape .* for 9 texts"):
            own.adapt(pile, vectors=wrong)
    with pytest.raises(DataError, match="vectors hold a vector with NaN or infinity for text 0"):
        own.adapt(pile, vectors=np.full_like(letters(pile), np.nan))


def test_of_a_large_pile_a_sample_is_used(classifier: FewShotClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmin.classifier.learning.MOST_TEXTS", 3)
    sizes = []
    whole = classifier.state_.model.own
    assert whole is not None

    def counted(texts: Any) -> Any:
        sizes.append(len(texts))
        return letters(texts)

    classifier.set_params(encoder=counted).fit(EXAMPLES).adapt([f"text {n}" for n in range(50)])
    assert sizes[-1] == 3


@pytest.mark.parametrize("text", ["我想要退款", "где моя посылка", "أين طلبي", "😀 🚀 🎉", "退款 please 我的钱 呢"])
def test_what_the_encoder_cannot_read_is_warned_about_once_and_refused_under_auto(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dmin.encoder.readable._WARNED", set())
    classifier = FewShotClassifier(reject="auto", unknown_label="?").fit(EXAMPLES)
    with pytest.warns(UserWarning, match="the encoder 'bge-small' cannot read texts like"):
        answers = classifier.answer([text, "I want my money back"])
    assert [found.refused for found in answers] == [True, False] and answers[0].label == "?"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = classifier.explain(text)  # it was said
    assert found.unreadable and "cannot read it" in str(found)
    classifier.set_params(reject=None)
    assert classifier.predict([text])[0] in EXAMPLES


def test_auto_with_one_example_per_class_goes_by_how_near_the_classes_are() -> None:
    random = np.random.default_rng(3)
    vectors = {label: random.normal(size=(1, 16)) for label in range(8)}
    classifier = FewShotClassifier("adaptive", encoder="precomputed", reject="auto", unknown_label=-1).fit(vectors)
    state = classifier.state_
    cosines = state.cosines(state.vectors(np.concatenate(list(vectors.values()))))
    np.fill_diagonal(cosines, -1)
    assert classifier.threshold_ == pytest.approx(np.median(cosines.max(axis=1)), abs=1e-6)
    assert classifier.predict(np.concatenate(list(vectors.values()))).tolist() == list(range(8))

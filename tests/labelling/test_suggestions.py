"""`dmin.suggest`: reasons in words, nothing twice, clear lines for bad input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dmin
from dmin import FewShotClassifier
from dmin.data import Corpus
from dmin.encoder import Encoder
from dmin.errors import ConfigError, DataError
from tests.conftest import word_corpus
from tests.labelling.hashed import encode


@pytest.fixture
def words() -> Any:
    """Six classes of eight texts; the texts of a class share a word."""
    plain = word_corpus(texts=8, classes=6)
    return Corpus("words", tuple(f"{a} {b}" for a, b in zip(plain.labels, plain.texts, strict=True)), plain.labels)


def test_without_classes_the_pile_is_covered(words: Any) -> None:
    found = dmin.suggest(words.texts, n=6, vectors=encode(words.texts))
    assert len({words.labels[suggestion.index] for suggestion in found}) == 6
    assert all(words.texts[suggestion.index] == suggestion.text for suggestion in found)
    assert sum(suggestion.stands_for for suggestion in found) == len(words.texts)
    assert all(suggestion.reason == f"stands for {suggestion.stands_for} similar texts" for suggestion in found)


def test_with_classes_other_regions_come_first_and_say_so(words: Any) -> None:
    known = {label: [words.texts[row] for row in words.by_class[label][:3]] for label in words.classes[:3]}
    classifier = FewShotClassifier(encoder=encode).fit(known)
    found = dmin.suggest(words.texts, classifier, n=3)
    assert {words.labels[suggestion.index] for suggestion in found} == set(words.classes[3:])
    assert all("like nothing you have labelled" in suggestion.reason for suggestion in found)
    assert all(set(suggestion.likely) == set(known) for suggestion in found)
    taken = {text for texts in known.values() for text in texts}
    everything = dmin.suggest(words.texts, classifier, n=100)
    assert not taken & {suggestion.text for suggestion in everything}


def test_a_text_between_two_classes_is_called_so() -> None:
    axes = {"apple": 0, "pear": 0, "wheel": 1, "brake": 1, "song": 2, "wave": 3, "cloud": 4}
    own = {word: 5 + place for place, word in enumerate(axes)}  # what a word does not share with its class

    def on_axes(texts: Sequence[str]) -> Any:
        rows = np.zeros((len(texts), 12), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.split():
                row[axes[word]] += 1
                row[own[word]] += 0.7
        return rows

    classifier = FewShotClassifier(encoder=on_axes, use_names=False)
    classifier.fit({"fruit": ["apple", "pear"], "cars": ["wheel", "brake"]})
    pile = ["apple wheel", "song", "wave", "cloud", "pear pear", "brake brake"]
    reasons = {found.text: found.reason for found in dmin.suggest(pile, classifier, n=6)}
    assert reasons["apple wheel"].startswith("between fruit and cars; stands for")
    assert reasons["song"].startswith("like nothing you have labelled")
    assert "pear pear" not in reasons  # as near to an example as a repetition


def test_the_same_seed_gives_the_same_suggestions(words: Any) -> None:
    vectors = encode(words.texts)
    assert dmin.suggest(words.texts, n=5, seed=3, vectors=vectors) == dmin.suggest(
        words.texts, n=5, seed=3, vectors=vectors
    )


def test_equal_texts_are_suggested_once_and_fewer_come_back() -> None:
    pile = ["Where is it", "where  is IT", "where is it", "refund please"]
    found = dmin.suggest(pile, n=20, vectors=encode(pile))
    assert [suggestion.index for suggestion in found] == [0, 3]
    assert [suggestion.index for suggestion in dmin.suggest(["same"] * 50, n=20, vectors=encode(["same"] * 50))] == [0]


def test_left_out_places_and_unreadable_texts_are_not_suggested() -> None:
    pile: Sequence[Any] = ["one red", "", "two blue", None, "three green"]
    vectors = encode([str(text) or "x" for text in pile])
    assert {suggestion.index for suggestion in dmin.suggest(pile, n=9, vectors=vectors)} == {0, 2, 4}
    assert {suggestion.index for suggestion in dmin.suggest(pile, n=9, vectors=vectors, leave_out=[4])} == {0, 2}


def test_one_class_alone_is_enough_to_know_what_is_covered(words: Any) -> None:
    texts = [words.texts[row] for row in words.by_class["car"]]
    classifier = FewShotClassifier(encoder=encode, reject=-1.0).fit({"car": texts[:3]})
    found = dmin.suggest(words.texts, classifier, n=5)
    assert len(found) == 5 and "car" not in {words.labels[suggestion.index] for suggestion in found}


def test_a_classifier_of_vectors(words: Any) -> None:
    vectors = encode(words.texts)
    first = {label: vectors[list(words.by_class[label][:2])] for label in words.classes[:2]}
    classifier = FewShotClassifier(encoder="precomputed").fit(first)
    found = dmin.suggest(words.texts, classifier, n=4, vectors=vectors)
    assert {words.labels[suggestion.index] for suggestion in found} == set(words.classes[2:])
    with pytest.raises(DataError, match="give the pile's as vectors="):
        dmin.suggest(words.texts, classifier)


def test_vectors_come_from_the_cache(words: Any, tiny_encoder_folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = FewShotClassifier(encoder=str(tiny_encoder_folder), device="cpu")
    classifier.fit({label: [words.texts[words.by_class[label][0]]] for label in words.classes[:2]})
    first = dmin.suggest(words.texts, classifier, n=5)
    encoded: list[int] = []
    plain = Encoder.encode
    monkeypatch.setattr(
        Encoder, "encode", lambda self, texts, **k: encoded.append(len(texts)) or plain(self, texts, **k)
    )
    assert dmin.suggest(words.texts, classifier, n=5) == first
    assert sum(encoded) <= 5  # the classifier's answers about the suggestions; the pile is not encoded again


@pytest.mark.parametrize(
    ("pile", "options", "message"),
    [
        ([], {}, "the pile is empty"),
        (["", None], {}, "none of the 2 texts can be read"),
        (["a", "b"], {"n": 0}, "n=0: at least 1"),
        (["a", "b"], {"vectors": np.ones((3, 2))}, r"shape \(3, 2\) for 2 texts"),
        (["a", "b"], {"vectors": np.array([[1.0, 0], [np.nan, 1]])}, "the vector of text 1 holds NaN"),
    ],
)
def test_bad_input_is_one_line(pile: list[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises((DataError, ConfigError), match=message) as caught:
        dmin.suggest(pile, **options)
    assert "\n" not in str(caught.value)


def test_examples_of_another_width_are_refused(words: Any) -> None:
    classifier = FewShotClassifier(encoder=encode).fit({"a": ["apple"], "b": ["wheel"]})
    with pytest.raises(DataError, match="width 7, the examples' 32"):
        dmin.suggest(words.texts, classifier, vectors=np.ones((len(words.texts), 7)))

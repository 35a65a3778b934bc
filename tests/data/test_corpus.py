"""Labelled texts, checked once."""

from __future__ import annotations

import pytest

from dmin.data import Corpus
from dmin.errors import DataError, UnknownNameError
from tests.conftest import word_corpus


def test_indices_by_class_and_fingerprint() -> None:
    corpus = Corpus("x", ("a", "b", "c"), ("one", "two", "one"))
    assert corpus.by_class == {"one": (0, 2), "two": (1,)}
    assert corpus.classes == ("one", "two")
    assert corpus.fingerprint == Corpus("y", ("a", "b", "c"), ("one", "two", "one")).fingerprint
    assert corpus.fingerprint != Corpus("x", ("a", "c", "b"), ("one", "two", "one")).fingerprint
    assert corpus.fingerprint != Corpus("x", ("a", "b", "c"), ("one", "one", "two")).fingerprint


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ((), (), "holds no texts"),
        (("a",), (), "1 texts but 0 labels"),
        (("a", " "), ("x", "y"), "text 2 .class 'y'. is empty"),
        (("a", "b"), ("x", ""), "text 2 .'b'. has no label"),
    ],
)
def test_what_cannot_be_used_is_named(texts: tuple[str, ...], labels: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Corpus("x", texts, labels)


@pytest.mark.parametrize(
    ("examples", "message"),
    [({"a": []}, "'a' has no example"), ({"a": "text"}, "list of texts"), ({"a": 3}, "list of texts")],
)
def test_bad_mappings(examples: dict[str, list[str]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Corpus.from_mapping(examples)


def test_unknown_split() -> None:
    with pytest.raises(DataError, match="--split-seed"):
        word_corpus().split("protaugment-01")
    from dmin.data import load_corpus

    with pytest.raises(UnknownNameError, match="did you mean 'novel14'"):
        load_corpus("starter").split("novel13")


def test_large_enough() -> None:
    corpus = Corpus.from_mapping({"big": ["a", "b", "c"], "small": ["d"]})
    assert corpus.large_enough(corpus.classes, 2) == (["big"], ["small"])

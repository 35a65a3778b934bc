"""Labelled texts: validation, joining, leaving texts out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dmin.data import ClassSplit, Corpus, join_corpora, leave_out, load_corpus
from dmin.data.corpus import without_near_misses
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
    with pytest.raises(UnknownNameError, match="did you mean 'novel14'"):
        load_corpus("starter").split("novel13")


def test_large_enough() -> None:
    corpus = Corpus.from_mapping({"big": ["a", "b", "c"], "small": ["d"]})
    assert corpus.large_enough(corpus.classes, 2) == (["big"], ["small"])


ONE = Corpus("one", ("pay me", "Pay  it", "hello"), ("money", "money", "greeting"))
TWO = Corpus("two", ("good day", "bye"), ("greeting", "farewell"))


def test_classes_remember_their_set() -> None:
    both = join_corpora([ONE, TWO])
    assert both.name == "one+two" and len(both.texts) == 5
    assert both.classes == ("one/money", "one/greeting", "two/greeting", "two/farewell")
    assert both.origin["two/greeting"] == "two"
    assert both.name_of("two/greeting") == "greeting"
    assert ONE.name_of("greeting") == "greeting"
    with pytest.raises(DataError, match="twice: one"):
        join_corpora([ONE, ONE])


def test_sets_are_joined_by_commas(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.csv").write_text("text,label\nhello,a/b_c\nbye,d\n")
    both = load_corpus(f"{tmp_path / 'first.csv'}, {tmp_path / 'second.csv'}")
    assert both.classes == ("first/a/b_c", "first/d", "second/a/b_c", "second/d")
    assert both.name_of("first/a/b_c") == "a b c"


def test_texts_are_left_out_ignoring_case_and_spaces() -> None:
    corpus = Corpus("one", ONE.texts, ONE.labels, {"s": ClassSplit(("money",), ("greeting",), ())})
    rest = leave_out(corpus, ["PAY it", " Hello", "not there"])
    assert rest.texts == ("pay me",) and rest.labels == ("money",)
    assert rest.splits["s"] == ClassSplit(("money",), (), ())
    assert leave_out(corpus, ["not there"]) is corpus


def test_labels_one_letter_off_are_named_and_left_out() -> None:
    test = Corpus("test", ("a", "b", "c"), ("refund", "refnd", "chess"))
    with pytest.warns(UserWarning, match=r"left out; correct them: 'refnd' \(1 texts; 'refund'\?\)"):
        kept = without_near_misses(test, ["refund"])
    assert kept.labels == ("refund", "chess") and kept.texts == ("a", "c")
    assert without_near_misses(kept, ["refund"]) is kept
    with pytest.raises(DataError, match="every label is a letter off"):
        without_near_misses(Corpus("test", ("b",), ("refnd",)), ["refund"])


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ({" a": ["x"]}, "the label ' a' begins or ends with white space; write 'a'"),
        ({"a": {"texts": ["x"]}}, r"class 'a' holds \{'texts': \['x'\]\}; a list of texts is needed"),
        ({"a": b"x"}, "a list of texts is needed"),
    ],
)
def test_examples_that_would_be_misread_are_refused(examples: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Corpus.from_mapping(examples)

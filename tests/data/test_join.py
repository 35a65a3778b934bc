"""Several sets as one, and texts left out by what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from dmin.data import ClassSplit, Corpus, join_corpora, leave_out, load_corpus
from dmin.errors import DataError

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


def test_texts_are_left_out_whatever_their_case_and_spaces() -> None:
    corpus = Corpus("one", ONE.texts, ONE.labels, {"s": ClassSplit(("money",), ("greeting",), ())})
    rest = leave_out(corpus, ["PAY it", " Hello", "not there"])
    assert rest.texts == ("pay me",) and rest.labels == ("money",)
    assert rest.splits["s"] == ClassSplit(("money",), (), ())
    assert leave_out(corpus, ["not there"]) is corpus

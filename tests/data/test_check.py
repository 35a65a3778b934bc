"""Checks of a corpus before use."""

from __future__ import annotations

from dmin.data import Corpus
from dmin.data.check import check_corpus


def test_each_problem_is_found() -> None:
    corpus = Corpus(
        "x",
        ("Hello there", "hello  THERE", "same text", "same text", "one two three four", "b", "c"),
        ("greeting", "greeting", "left", "right", "right", "right", "right"),
    )
    report = check_corpus(corpus, needed=2)
    assert (report.texts, report.classes) == (7, 3)
    assert report.smallest == ("left", 1) and report.largest == ("right", 4) and report.median == 2
    assert report.shortest == "b" and report.longest == "one two three four"
    assert report.duplicates == [("hello there", "greeting", 2)]
    assert report.contradictions == [("same text", ["left", "right"])]
    assert report.too_small == [("left", 1)]
    assert report.problems == 3


def test_a_clean_corpus_has_no_problems() -> None:
    report = check_corpus(Corpus.from_mapping({"a": ["1", "2"], "b": ["3", "4"]}), needed=2)
    assert report.problems == 0 and report.median == 2

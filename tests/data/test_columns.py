"""Which file, which columns: named with the file or by an option, else the obvious ones, and said."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from dmin.data.columns import Source, data_stem, split_names, with_columns
from dmin.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("a.csv", Source("a.csv", "T", "L", "E")),
        ("a.csv:text=ticket,label=intent", Source("a.csv", "ticket", "intent", "E")),
        ("a.csv:label=intent", Source("a.csv", "T", "intent", "E")),
        ("a.csv:encoding=utf-16,text=a, b", Source("a.csv", "a, b", "L", "utf-16")),
        ("s3://x/a.csv:text=x=y", Source("s3://x/a.csv", "x=y", "L", "E")),
        ("C:/a.csv", Source("C:/a.csv", "T", "L", "E")),
    ],
)
def test_columns_stand_behind_the_file(spec: str, expected: Source) -> None:
    assert Source.parse(spec, "T", "L", "E") == expected


def test_a_file_that_is_called_so_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv:text=b"
    path.write_text("text,label\n")
    assert Source.parse(path) == Source(str(path))


@pytest.mark.parametrize("spec", ["a.csv:text=", "a.csv:text=a,text=b"])
def test_what_cannot_be_meant_is_named(spec: str) -> None:
    with pytest.raises(DataError, match="each once and with a value"):
        Source.parse(spec)
    with pytest.raises(ConfigError, match="there is no folder of this user"):
        _ = Source("~nobody_of_this_name/x.csv").path


@pytest.mark.parametrize(
    ("columns", "text", "label"),
    [
        (["ticket", "intent"], "ticket", "intent"),
        (["id", "Utterance", "Category"], "Utterance", "Category"),
        (["said", "intent"], "said", "intent"),  # of two columns, the one that is not the label
        (["text", "message", "label", "topic"], "text", "label"),
    ],
)
def test_one_obvious_column_is_taken_and_said(columns: list[str], text: str, label: str) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = Source("x.csv").text_column(columns, "x.csv"), Source("x.csv").label_column(columns, "x.csv")
    assert found == (text, label)
    expected = [column for column, usual in ((text, "text"), (label, "label")) if column != usual]
    assert [str(note.message).split("'")[1] for note in said] == expected


@pytest.mark.parametrize("columns", [["message", "body", "label"], ["a", "b"], ["a", "b", "label"]])
def test_what_is_not_obvious_is_not_guessed(columns: list[str]) -> None:
    with pytest.raises(
        DataError, match=f"no column 'text'.*it has {', '.join(columns)}. Choose one with --text-column"
    ):
        Source("x.csv").text_column(columns, "x.csv")


def test_a_column_that_was_named_must_be_there_unless_another_file_has_it() -> None:
    with pytest.raises(DataError, match=r"no column 'txt' \(did you mean 'text'\?\)"):
        Source("x.csv", "txt").text_column(["text", "label"], "x.csv")
    assert Source("x.csv", "txt", fallback=True).text_column(["text", "label"], "x.csv") == "text"
    assert Source("x.csv", "txt", fallback=True).text_column(["text", "txt"], "x.csv") == "txt"


def test_a_column_that_stands_behind_the_file_must_be_there() -> None:
    for spec in ("x.csv:text=words", "x.csv:text=text"):
        with pytest.raises(DataError, match="no column '(words|text)'"):
            Source.parse(spec, fallback=True).text_column(["ticket", "intent"], "x.csv")


def test_lists_of_files() -> None:
    assert split_names("a.csv:text=t,label=l, starter,b.csv:label=x") == [
        "a.csv:text=t,label=l",
        "starter",
        "b.csv:label=x",
    ]
    assert with_columns("a.csv:label=l,b.csv", text="t", encoding="utf-16") == (
        "a.csv:text=t,label=l,encoding=utf-16,b.csv:text=t,encoding=utf-16"
    )
    assert with_columns("a.csv,starter") == "a.csv,starter"
    assert data_stem("x/a.csv:text=t,label=l,starter") == "a,starter"

"""Rows of files: what is wrong is named, with the row where there is one, and nothing is lost silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from dmin.data.formats import BadRow, read_format
from dmin.errors import DataError


def rows(path: Path, encoding: str = "utf-8") -> list[tuple[int, Any]]:
    return list(read_format(path, encoding))


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_separator_is_found_in_the_header(tmp_path: Path, sign: str) -> None:
    path = write(tmp_path / "x.csv", f'text{sign}label\n"a{sign} b"{sign}one\n')
    assert rows(path) == [(2, {"text": f"a{sign} b", "label": "one"})]


def test_spaces_around_column_names_do_not_count(tmp_path: Path) -> None:
    assert rows(write(tmp_path / "x.csv", "text, label\na,one\n")) == [(2, {"text": "a", "label": "one"})]


def test_many_blank_lines_do_not_stop_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "text,label\n" + "\n" * 1000 + "a,one\n")
    assert rows(path) == [(1002, {"text": "a", "label": "one"})]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.csv", "text,text\na,b\n", r"the column 'text' is there 2 times"),
        ("x.yaml", "a: [x]\nb: [y]\na: [z]\n", r"line 3: the key 'a' is there twice \(first in line 1\)"),
        ("x.json", '{"a": ["x"], "a": ["y"]}', r"the key 'a' is there twice"),
        ("x.json", '{"a": {"texts": ["x"]}}', r"class 'a' holds \{'texts': \['x'\]\}; a list of texts"),
        ("x.yaml", "a: {texts: [x]}", "a list of texts is needed"),
        ("x.yaml", "a: []", "class 'a' has no example"),
        ("x.yaml", "a: x", "class 'a' holds 'x'"),
        ("x.yaml", "1: [x]", "the label 1 is read as a int; put it in quotes"),
        ("x.yaml", "2020-01-01: [x]", "read as a date; put it in quotes"),
        ("x.yaml", "a: [2020-99-99]", "cannot be read .*; put it in quotes"),
        ("x.yaml", "a: [" + "[" * 5000, "nested too deeply|not valid YAML"),
        ("x.yaml", "[" * 200 + "]" * 200, "nested too deeply"),
        ("x.yaml", "a: &a [*a]", "an alias that holds itself"),
        ("x.yaml", "just words", "a mapping of labels to lists of texts is needed, not 'just words'"),
        ("x.json", "[" * 200_000, "nested too deeply"),
        ("x.json", '{"a": [' + "9" * 5000 + "]}", "not valid JSON"),
        ("x.xlsx", "PK", "save it as CSV"),
        ("x.doc", "x", "unknown kind of file"),
        ("x.csv", b"\xff\xfet\x00e\x00", "is UTF-16, not utf-8: give --encoding utf-16"),
        ("x.parquet", "no parquet", "not a readable Parquet file"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_short_line(tmp_path: Path, name: str, content: Any, reason: str) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(DataError, match=reason) as caught:
        rows(path)
    assert name in str(caught.value)
    assert len(str(caught.value)) < 600


def test_aliases_that_multiply_are_refused_before_they_are_written_out(tmp_path: Path) -> None:
    """A few hundred bytes that stand for thousands of millions of values, as values and as merged keys."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(DataError, match="aliases stand for more than"):
        rows(write(tmp_path / "values.yaml", "\n".join(lines)))
    merged = ["a0: &a0 {x: y}"]
    merged += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 12)]
    with pytest.raises(DataError, match="aliases stand for more than"):
        rows(write(tmp_path / "merged.yaml", "\n".join(merged)))


@pytest.mark.parametrize(
    ("name", "content", "number", "reason"),
    [
        ("x.jsonl", b'{"text": "a"}\n{"text": "caf\xe9"}\n{"text": "b"}\n', 2, "bytes that are not text"),
        ("x.jsonl", b'{"text": "a"}\n{"text": "\\ud800"}\n{"text": "b"}\n', 2, "bytes that are not text"),
        ("x.jsonl", b'{"text": "a"}\n{"text":\n{"text": "b"}\n', 2, "not valid JSON"),
        ("x.jsonl", b'{"text": "a"}\n[1]\n{"text": "b"}\n', 2, "an object"),
        ("x.jsonl", b'{"text": "a"}\n{"text": "x", "text": "y"}\n{"text": "b"}\n', 2, "there twice"),
        ("x.csv", b"text\na\ncaf\xe9\nb\n", 3, "bytes that are not text"),
        ("x.csv", b"text\na\nx,y\nb\n", 3, "2 columns, not 1 like the header"),
        ("x.json", b'[{"text": "a"}, 7, {"text": "b"}]', 2, "a mapping with text and label is needed, not 7"),
    ],
)
def test_a_bad_row_is_named_and_the_others_are_read(
    tmp_path: Path, name: str, content: bytes, number: int, reason: str
) -> None:
    found = rows(write(tmp_path / name, content))
    assert [record["text"] for _, record in found if not isinstance(record, BadRow)] == ["a", "b"]
    ((where, bad),) = [(n, record) for n, record in found if isinstance(record, BadRow)]
    assert where == number
    assert reason in bad.reason


@pytest.mark.parametrize("encoding", ["windows-1252", "utf-16", "latin-1"])
def test_other_encodings_are_read_when_they_are_named(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "x.csv", "text,label\ncafé,one\n".encode(encoding))
    assert rows(path, encoding) == [(2, {"text": "café", "label": "one"})]


def test_an_unknown_encoding_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="unknown encoding 'utf-9'"):
        rows(write(tmp_path / "x.csv", "text\na\n"), "utf-9")


def test_bytes_in_parquet_are_an_error_not_a_text(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"text": [b"x"], "label": ["a"]}), tmp_path / "x.parquet")
    ((_, bad),) = rows(tmp_path / "x.parquet")
    assert isinstance(bad, BadRow)
    assert "text holds bytes" in bad.reason


def test_yaml_with_characters_that_it_does_not_allow_is_an_error_in_words(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"sea: [wave\x00]\n")
    with pytest.raises(DataError, match="not valid YAML"):
        list(read_format(path))

"""Rows of files: what is wrong is named, with the row where there is one, and nothing is lost silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from dmin.data.readers import BadRow, read_format
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


def test_a_row_that_csv_cannot_read_does_not_end_the_file(tmp_path: Path) -> None:
    found = rows(write(tmp_path / "x.csv", 'text,label\na,one\n"b"x,two\nc,three\n'))
    assert [number for number, record in found if isinstance(record, BadRow)] == [3]
    assert [record["text"] for _, record in found if not isinstance(record, BadRow)] == ["a", "c"]


def test_a_quote_that_hides_rows_is_said(tmp_path: Path) -> None:
    """Rows inside of a quote that was forgotten must not disappear as one bad row."""
    with pytest.raises(DataError, match="a quote is not closed"):
        rows(write(tmp_path / "x.csv", 'text,label\na,one\n"b,two\nc,three\n'))
    found = rows(write(tmp_path / "y.csv", 'text,label\n"a,one\nb,two\nc" ,three\nd,four\n'))
    ((_, bad),) = [row for row in found if isinstance(row[1], BadRow)]
    assert "lines 2 to 4: is a quote missing?" in bad.reason


def test_rows_are_counted_as_a_spreadsheet_counts_them(tmp_path: Path) -> None:
    """A cell of two lines is one row, and a blank line is a row too."""
    found = rows(write(tmp_path / "x.csv", 'text,label\n"a\nb",one\nc,two\n\nd,three\n'))
    assert [(number, record["text"]) for number, record in found] == [(2, "a\nb"), (3, "c"), (5, "d")]


def test_names_of_columns_in_another_encoding_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="names of its columns are not text in this encoding: see --encoding"):
        rows(write(tmp_path / "x.csv", b"caf\xe9,label\na,b\n"))


def test_a_lone_surrogate_is_found_wherever_it_is(tmp_path: Path) -> None:
    found = rows(write(tmp_path / "x.jsonl", '{"text": "a", "more": [{"x": "\\ud800"}]}\n{"\\ud800": "b"}\n'))
    assert [isinstance(record, BadRow) for _, record in found] == [True, True]


def test_one_text_that_is_no_utf8_leaves_the_other_rows_of_parquet(tmp_path: Path) -> None:
    array = pyarrow.StringArray.from_buffers(
        3, pyarrow.py_buffer(b"\x00\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0"), pyarrow.py_buffer(b"a\xffc")
    )
    parquet.write_table(pyarrow.table({"text": array}), tmp_path / "x.parquet")
    found = rows(tmp_path / "x.parquet")
    assert [isinstance(record, BadRow) for _, record in found] == [False, True, False]


def test_utf8_read_in_another_encoding_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "text\ncafé\n")
    with pytest.warns(UserWarning, match="looks like UTF-8 but is read as cp1252"):
        rows(path, "windows-1252")


def test_a_line_that_never_ends_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmin.data.readers.MOST_CELL", 100)
    with pytest.raises(DataError, match="row 2: longer than 100 characters"):
        rows(write(tmp_path / "x.jsonl", '{"text": "a"}\n' + "x" * 1000))


@pytest.mark.parametrize("encoding", ["rot13", "zip", "hex", "utf-8\x00", ""])
def test_codecs_that_are_not_of_texts_are_refused(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(DataError, match="unknown encoding"):
        rows(write(tmp_path / "x.csv", "text\na\n"), encoding)


def test_yaml_with_characters_that_it_forbids_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.yaml is not valid YAML: unacceptable character"):
        rows(write(tmp_path / "x.yaml", b"a: [caf\xe9]\n"))


def test_a_key_twice_is_said_once_and_without_other_advice(tmp_path: Path) -> None:
    path = write(tmp_path / "x.yaml", "a: [x]\na: [y]\n")
    with pytest.raises(DataError) as caught:
        rows(path)
    expected = f"{path}, line 2: the key 'a' is there twice (first in line 1), and one would be lost"
    assert str(caught.value) == expected

"""Rows of texts: what cannot be used stops the work, is left out, or keeps its place."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from dmin.bulk.files import answer_batches
from dmin.bulk.inputs import InputRow, count_rows, read_texts, standard_input
from dmin.bulk.on_error import OnError
from dmin.errors import DataError

BAD = {
    "in.jsonl": b'{"id": 1, "text": "a"}\n{"id": 2, "text": "caf\xe9"}\n{"id": 3, "text": "b"}\n{"id": 4, "text": 7}\n',
    "in.csv": b"id,text\n1,a\n2,caf\xe9\n3,b\nx\n",
    "in.txt": b"a\ncaf\xe9\nb\n\xff\n",
}


def write(folder: Path, name: str) -> Path:
    (folder / name).write_bytes(BAD[name])
    return folder / name


@pytest.mark.parametrize("name", BAD)
def test_stop_names_the_row_and_the_way_on(tmp_path: Path, name: str) -> None:
    number = 3 if name == "in.csv" else 2
    with pytest.raises(DataError, match=rf"{name}, row {number}: .*not text in this encoding.*--on-error skip"):
        list(read_texts(write(tmp_path, name)))


@pytest.mark.parametrize("name", BAD)
def test_skip_leaves_out_and_says_so(tmp_path: Path, name: str) -> None:
    with pytest.warns(UserWarning, match=f"{name}: 2 rows could not be used, left out .row .*; row ") as said:
        rows = list(read_texts(write(tmp_path, name), on_error=OnError.skip))
    assert [row.text for row in rows] == ["a", "b"] and len(said) == 1


@pytest.mark.parametrize("name", BAD)
def test_keep_keeps_the_place_and_the_columns(tmp_path: Path, name: str) -> None:
    with pytest.warns(UserWarning, match="2 rows could not be used, kept without an answer"):
        rows = list(read_texts(write(tmp_path, name), on_error=OnError.keep))
    assert [row.text for row in rows] == ["a", None, "b", None]
    assert {tuple(row.record) for row in rows} == {("text",) if name == "in.txt" else ("id", "text")}
    assert [bool(row.error) for row in rows] == [False, True, False, True]
    (lines,) = answer_batches(iter(rows), lambda texts: [{"label": text} for text in texts], ("label", "error"))
    assert [line["label"] for line in lines] == ["a", None, "b", None]
    assert "not text" in lines[1]["error"] and lines[0]["error"] is None


def test_bad_rows_at_the_start_wait_for_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text("{\n" * 300 + '{"id": 1, "text": "a"}\n')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = list(read_texts(path, on_error=OnError.keep))
        (tmp_path / "none.jsonl").write_text("{\n" * 3)
        none = list(read_texts(tmp_path / "none.jsonl", on_error=OnError.keep))
    assert len(rows) == 301 and all(tuple(row.record) == ("id", "text") for row in rows)
    assert [row.record for row in none] == [{"text": None}] * 3


def test_columns_and_encodings_of_inputs(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes("id;body;x\n1;café;y\n".encode("windows-1252"))
    given = f"{path}:text=body,encoding=windows-1252"
    assert [row.text for row in read_texts(given)] == ["café"]
    with pytest.warns(UserWarning, match="read from the column 'body'"):
        assert [row.text for row in read_texts(path, encoding="windows-1252")] == ["café"]
    with pytest.raises(DataError, match="no column 'x y'"):
        list(read_texts(path, "x y", encoding="windows-1252"))
    path = tmp_path / "in.txt"
    path.write_bytes("\ufeffcafé\r\nthé\r\n".encode("utf-16"))
    assert [row.text for row in read_texts(path, encoding="utf-16")][1:] == ["thé"]
    with pytest.raises(DataError, match="is UTF-16, not utf-8: give --encoding utf-16"):
        list(read_texts(path))


def test_standard_input_of_another_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding, expected in (("utf-8", [None, "b"]), ("latin-1", ["café", "b"])):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9\nb\n"), "ascii"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = list(read_texts(standard_input(encoding), on_error=OnError.keep))
        assert [row.text for row in rows] == expected


def test_empty_texts_are_no_error(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("text,id\n ,1\na,2\n")
    assert list(read_texts(path)) == [
        InputRow(2, {"text": " ", "id": "1"}, None),
        InputRow(3, {"text": "a", "id": "2"}, "a"),
    ]


def test_rows_are_counted_for_the_progress_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("text\n" + "x\n" * 500)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": "x"}) + "\n" for _ in range(500)))
    parquet.write_table(pyarrow.table({"text": ["x"] * 500}), tmp_path / "a.parquet")
    for kind in ("csv", "jsonl", "parquet"):
        assert count_rows(tmp_path / f"a.{kind}") == 500
    assert count_rows(tmp_path / "gone.csv") is None and count_rows(tmp_path / "a.yaml") is None
    monkeypatch.setattr("dmin.bulk.inputs._SAMPLE", 1000)
    monkeypatch.setattr("dmin.bulk.inputs._PIECE", 1000)
    assert 450 < (count_rows(tmp_path / "a.jsonl") or 0) < 550

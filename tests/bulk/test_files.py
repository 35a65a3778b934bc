"""Files of any size: every row once, also after a crash."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dmin.bulk import files as bulk
from dmin.bulk import outputs
from dmin.bulk.files import classify_file
from dmin.bulk.inputs import InputRow, read_texts
from dmin.errors import DataError

FIELDS = ("label", "score")


def answer(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"label": text[-1], "score": 0.5} for text in texts]


def write_input(path: Path, rows: int) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"text": f"text {n}", "id": n}) + "\n" for n in range(rows)))
    else:
        path.write_text("text,id\n" + "".join(f"text {n},{n}\n" for n in range(rows)))
    return path


@pytest.mark.parametrize("source", [".jsonl", ".csv"])
@pytest.mark.parametrize("target", [".jsonl", ".csv", ".tsv"])
def test_every_row_is_answered_in_order(tmp_path: Path, source: str, target: str) -> None:
    path = write_input(tmp_path / f"in{source}", 600)
    output = tmp_path / f"out{target}"
    batches: list[int] = []
    rows = classify_file(read_texts(path, "text"), output, answer, fields=FIELDS, after_batch=batches.append)
    assert rows == 600 and batches == [256, 256, 88]
    if target == ".jsonl":
        found = [json.loads(line) for line in output.read_text().splitlines()]
    else:
        found = list(csv.DictReader(io.StringIO(output.read_text()), delimiter="," if target == ".csv" else "\t"))
    assert [str(row["id"]) for row in found] == [str(n) for n in range(600)]
    assert all(row["label"] == row["text"][-1] for row in found)
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("target", [".jsonl", ".csv"])
@pytest.mark.parametrize("cut", [0, 7])
def test_a_crash_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, cut: int
) -> None:
    monkeypatch.setattr(bulk, "BATCH", 10)
    path = write_input(tmp_path / "in.jsonl", 95)
    whole, output = tmp_path / f"whole{target}", tmp_path / f"out{target}"
    classify_file(read_texts(path, "text"), whole, answer, fields=FIELDS)
    calls: list[int] = []

    def crash(rows: int) -> None:
        calls.append(rows)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        classify_file(read_texts(path, "text"), output, answer, fields=FIELDS, after_batch=crash)
    part = tmp_path / f"out{target}.part"
    assert part.is_file() and not output.exists()
    part.write_bytes(part.read_bytes()[: -cut or None])  # a line that was half on its way to the disk
    done: list[int] = []
    classify_file(read_texts(path, "text"), output, answer, fields=FIELDS, resume=True, after_batch=done.append)
    assert output.read_bytes() == whole.read_bytes()
    assert sum(done) == 95 - 40 + bool(cut)  # what was whole is not done again


def test_line_breaks_inside_a_text_do_not_break_rows(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"text": "two\nlines"}) + "\n" + json.dumps({"text": "one"}) + "\n")
    classify_file(read_texts(path, "text"), tmp_path / "out.csv", answer, fields=FIELDS)
    assert (tmp_path / "out.csv").read_text().count("\n") == 3


def test_plain_lines_and_streams(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("first\nsecond\n")
    assert list(read_texts(path, "text")) == [
        InputRow(1, {"text": "first"}, "first"),
        InputRow(2, {"text": "second"}, "second"),
    ]
    assert list(read_texts(io.StringIO("a\nb"), "text")) == [
        InputRow(1, {"text": "a"}, "a"),
        InputRow(2, {"text": "b"}, "b"),
    ]


def test_inputs_and_outputs_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    path = write_input(tmp_path / "in.csv", 3)
    with pytest.raises(DataError, match="no column 'body'; it has text, id"):
        list(read_texts(path, "body"))
    with pytest.raises(DataError, match="output goes to"):
        classify_file(read_texts(path, "text"), tmp_path / "out.xlsx", answer, fields=FIELDS)
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(DataError, match="is there already"):
        classify_file(read_texts(path, "text"), tmp_path / "out.csv", answer, fields=FIELDS)
    with pytest.raises(DataError, match="no such file"):
        list(read_texts(tmp_path / "gone.txt", "text"))


def test_parquet_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written in groups of rows, with columns whose type shows late, and going on after a crash."""
    from pyarrow import parquet

    monkeypatch.setattr(bulk, "BATCH", 10)
    monkeypatch.setattr(outputs, "_ROW_GROUP", 7)
    path = write_input(tmp_path / "in.jsonl", 35)
    output = tmp_path / "out.parquet"

    def typed(texts: Sequence[str]) -> list[dict[str, Any]]:
        rows = []
        for text in texts:
            number = int(text.split()[-1])
            top = [{"label": "a", "score": 0.5}]
            rows.append({"label": text[-1], "score": 1 if number < 12 else 0.5, "top_k": top})
        return rows

    def crash(rows: int) -> None:
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        classify_file(read_texts(path, "text"), output, typed, fields=(*FIELDS, "top_k"), after_batch=crash)
    assert not output.exists() and (tmp_path / "out.parquet.part").exists()
    assert classify_file(read_texts(path, "text"), output, typed, fields=(*FIELDS, "top_k"), resume=True) == 35
    table = parquet.read_table(output)
    assert table.column("id").to_pylist() == list(range(35)) and table.num_rows == 35
    assert table.column("score").to_pylist()[11:13] == [1.0, 0.5]
    assert table.column("top_k").to_pylist()[0] == [{"label": "a", "score": 0.5}]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl", "out.parquet"]


def test_a_column_of_the_users_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"text": "text 7", "label": "mine"}) + "\n")
    classify_file(read_texts(path, "text"), tmp_path / "out.jsonl", answer, fields=FIELDS)
    found = json.loads((tmp_path / "out.jsonl").read_text())
    assert found == {"text": "text 7", "label": "mine", "answer_label": "7", "score": 0.5}


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_rows_without_a_text_stay_in_their_place(tmp_path: Path) -> None:
    rows = [{"text": "text 1"}, {"text": "  "}, {"text": None}, {"text": "text 4"}]
    path = write_rows(tmp_path / "in.jsonl", rows)
    assert classify_file(read_texts(path, "text"), tmp_path / "out.csv", answer, fields=FIELDS) == 4
    found = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert [row["label"] for row in found] == ["1", "", "", "4"]
    with pytest.raises(DataError, match="row 1: the text is 7"):
        classify_file(read_texts(write_rows(path, [{"text": 7}]), "text"), tmp_path / "o.csv", answer, fields=FIELDS)


def test_columns_keep_their_place_and_additional_ones_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH", 1)
    rows = [{"text": "text 1", "a": 1, "b": 2}, {"text": "text 2", "b": 20, "a": 10}]
    path = write_rows(tmp_path / "in.jsonl", rows)
    classify_file(read_texts(path, "text"), tmp_path / "out.csv", answer, fields=FIELDS)
    found = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert [(row["a"], row["b"]) for row in found] == [("1", "2"), ("10", "20")]
    path = write_rows(tmp_path / "in.jsonl", [*rows, {"text": "text 3", "c": 3}])
    with pytest.raises(DataError, match="row 3 has a column 'c' that the first row lacks"):
        classify_file(read_texts(path, "text"), tmp_path / "more.csv", answer, fields=FIELDS)
    classify_file(read_texts(path, "text"), tmp_path / "more.jsonl", answer, fields=FIELDS)
    assert json.loads((tmp_path / "more.jsonl").read_text().splitlines()[2])["c"] == 3


def test_an_interrupted_run_is_not_lost_by_accident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BATCH", 10)
    path = write_input(tmp_path / "in.jsonl", 30)

    def crash(rows: int) -> None:
        raise RuntimeError("power cut")

    def more(texts: Sequence[str]) -> list[dict[str, Any]]:
        return [{**fields, "top_k": []} for fields in answer(texts)]

    for name in ("out.csv", "out.jsonl"):
        output, part = tmp_path / name, tmp_path / f"{name}.part"
        with pytest.raises(RuntimeError):
            classify_file(read_texts(path, "text"), output, answer, fields=FIELDS, after_batch=crash)
        kept = part.read_bytes()
        with pytest.raises(DataError, match="add --resume to continue it, or remove it"):
            classify_file(read_texts(path, "text"), output, answer, fields=FIELDS)
        with pytest.raises(DataError, match="use the same options"):
            classify_file(read_texts(path, "text"), output, more, fields=(*FIELDS, "top_k"), resume=True)
        assert part.read_bytes() == kept
        assert classify_file(read_texts(path, "text"), output, answer, fields=FIELDS, resume=True) == 30


def test_parquet_takes_odd_columns(tmp_path: Path) -> None:
    import datetime

    import pyarrow
    from pyarrow import parquet

    day = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    parquet.write_table(pyarrow.table({"text": ["text 1"], "when": [day]}), tmp_path / "in.parquet")
    classify_file(read_texts(tmp_path / "in.parquet", "text"), tmp_path / "out.jsonl", answer, fields=FIELDS)
    assert "2026-01-02" in (tmp_path / "out.jsonl").read_text()
    rows = [{"text": "text 1", "x": 1}, {"text": "text 2", "x": "one", "late": 5}]
    path = write_rows(tmp_path / "in.jsonl", rows)
    classify_file(read_texts(path, "text"), tmp_path / "mixed.parquet", answer, fields=FIELDS)
    table = parquet.read_table(tmp_path / "mixed.parquet")
    assert table.column("x").to_pylist() == ["1", "one"] and table.column("late").to_pylist() == [None, 5]

"""Written tables: no cell that a spreadsheet runs, no row lost to the kind of its neighbours."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dmin.bulk.files import classify_file
from dmin.bulk.inputs import read_texts
from dmin.files import safe_cell

FORMULAS = ["=cmd()", "+1+cmd|x", "-2+3", "@SUM(A1)", "\t=1", "＝1"]
PLAIN = ["-0.25", "+3", "-1e-5", "a=b", "", "it's", "1-2"]


def answer(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"label": text, "score": -0.5} for text in texts]


@pytest.mark.parametrize(
    ("text", "safe"), [*((text, "'" + text) for text in FORMULAS), *((text, text) for text in PLAIN)]
)
def test_a_formula_gets_an_apostrophe_and_a_number_none(text: str, safe: str) -> None:
    assert safe_cell(text) == safe


@pytest.mark.parametrize("kind", [".csv", ".tsv"])
def test_cells_and_names_of_columns_are_safe_unless_asked_for_raw(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps({"text": text, "=id": -3}) + "\n" for text in FORMULAS))
    for raw in (False, True):
        output = tmp_path / f"out-{raw}{kind}"
        classify_file(read_texts(source), output, answer, fields=("label", "score"), raw=raw)
        rows = list(csv.DictReader(io.StringIO(output.read_text()), delimiter="," if kind == ".csv" else "\t"))
        for row, text in zip(rows, FORMULAS, strict=True):
            written = text if raw else "'" + text
            assert (row["text"], row["label"], row["score"]) == (written, written, "-0.5")
            assert row["=id" if raw else "'=id"] == "-3"
    classify_file(read_texts(source), tmp_path / "out.jsonl", answer, fields=("label", "score"))
    assert [json.loads(line)["text"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == FORMULAS


@pytest.mark.parametrize("kind", [".csv", ".jsonl", ".parquet"])
def test_hundreds_of_empty_rows_at_the_start_do_not_stop_a_file(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "in.csv"
    source.write_text("text,id\n" + "".join(f",{n}\n" for n in range(600)) + "a,600\n")
    assert classify_file(read_texts(source), tmp_path / f"out{kind}", answer, fields=("label", "score")) == 601
    if kind == ".csv":
        rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
        assert [row["label"] for row in rows] == [""] * 600 + ["a"] and rows[-1]["score"] == "-0.5"

"""Mutated files of every kind: a `DminError` in one line or a corpus, never anything else."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from dmin.bulk.files import classify_file
from dmin.bulk.inputs import read_texts
from dmin.bulk.on_error import OnError
from dmin.data import load_corpus
from dmin.errors import DminError
from tests.fuzz.mutations import NASTY_TEXTS, mutate_file

COUNT = 2000 if os.environ.get("DMIN_STRESS") == "1" else 200
KINDS = {
    ".jsonl": '{"text": "where is it", "label": "parcel"}\n{"text": "pay me back", "label": "refund"}\n',
    ".csv": 'text,label\nwhere is it,parcel\n"pay, me ""back""",refund\n',
    ".tsv": "text\tlabel\nwhere is it\tparcel\n",
    ".yaml": "parcel:\n  - where is it\nrefund: [pay me back, 'my money']\n",
    ".json": '{"parcel": ["where is it"], "refund": ["pay me back"]}',
    ".txt": "where is it\npay me back\n",
}


def write(path: Path) -> None:
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.table({"text": ["a", "b"], "label": ["x", "y"]}), path)
    else:
        path.write_text(KINDS[path.suffix])


def answer(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"label": "x"} for _ in texts]


@pytest.mark.parametrize("kind", [*KINDS, ".parquet"])
def test_mutated_files(tmp_path: Path, kind: str) -> None:
    random, path = Random(13), tmp_path / f"x{kind}"
    read = 0
    for number in range(COUNT):
        write(path)
        mutate_file(path, random)
        encoding = random.choice(["utf-8"] * 6 + ["utf-16", "windows-1252", "utf-8-sig", "utf-7"])
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                load_corpus(str(path), encoding=encoding)
                read += 1
            except DminError as error:
                assert len(str(error)) < 2000 and str(error).isprintable() and "\n" not in str(error), repr(str(error))
            try:
                rows = read_texts(path, encoding=encoding, on_error=random.choice(list(OnError)))
                classify_file(rows, tmp_path / f"{number}.csv", answer, fields=("label", "error"))
            except DminError as error:
                assert len(str(error)) < 2000, repr(str(error))
        assert time.perf_counter() - started < 5
        assert {found.name for found in tmp_path.iterdir()} <= {path.name, f"{number}.csv"}
        (tmp_path / f"{number}.csv").unlink(missing_ok=True)
    assert read or kind in (".txt", ".parquet")


@pytest.mark.parametrize(
    "name", [*NASTY_TEXTS, "x.csv:text=", "x" * 300 + ".csv", "~nobody_here/x.csv", ":text=a", ","]
)
def test_names_that_cannot_be_data(name: str) -> None:
    with pytest.raises(DminError) as caught:
        load_corpus(name)
    assert len(str(caught.value)) < 6000

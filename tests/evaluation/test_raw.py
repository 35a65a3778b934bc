"""Raw results: what is packed comes back, what is damaged is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dmin.errors import DataError
from dmin.evaluation.bench import JobResult
from dmin.evaluation.comparison_plan import ComparisonPlan, Job, TableRow
from dmin.evaluation.raw import RawCell, pack, read_raw, unpack, write_raw
from dmin.training import load_config

ROW = TableRow("dmin", "dmin", {"capsules": 8}, "DMIN", {"pooling": "mean"})


def result(counts: list[int]) -> JobResult:
    accuracies = [count / 50 for count in counts]
    return JobResult(Job("starter", "s1", 1, ROW, 5, 1), "s1", "DMIN", accuracies, "hash", 2.34, 100.4, 900, 40, 14)


@given(some.lists(some.integers(0, 65535), max_size=400))
def test_counts_come_back(counts: list[int]) -> None:
    assert unpack(pack(counts)) == counts


def test_a_cell_comes_back_exactly(tmp_path: Path) -> None:
    before = result([0, 17, 50, 33] * 75)
    cell = RawCell.of(before, "key", 10)
    after = cell.result()
    assert after.accuracies == before.accuracies and after.job == before.job and after.seconds == 2.34
    assert len(cell.line()) < 1000
    plan = ComparisonPlan(load_config(overrides={"stage2.batch": 2}), ("starter",), ("s1",), (ROW,), (5,), (1,), 2, 300)
    write_raw(tmp_path / "raw.jsonl", plan, [cell], "Comparison", "dmin compare")
    head, cells = read_raw(tmp_path / "raw.jsonl")
    assert head is not None and cells == [cell]
    named = replace(ROW, settings=plan.settings_of(ROW))  # what a search chose is written with the row
    assert named.settings["options.input_map"] is True and head.plan() == replace(plan, rows=(named,))
    assert head.plan().prepare()[0].config == plan.prepare()[0].config


@pytest.mark.parametrize("text", ["x", "", "eJxjYGBg", pack([51])])
def test_damaged_counts_are_refused(text: str) -> None:
    cell = RawCell.of(result([1, 2]), "key", 10).model_copy(update={"right": text})
    with pytest.raises(DataError, match="raw"):
        cell.result()


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_raw(tmp_path / "none.jsonl")
    path = tmp_path / "raw.jsonl"
    path.write_text('{"key": 3}\n')
    with pytest.raises(DataError, match="line 1"):
        read_raw(path)

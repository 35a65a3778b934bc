"""How many rows a progress bar announces for many files."""

from __future__ import annotations

from pathlib import Path

from dmin.bulk.remote import find_files
from dmin.bulk.totals import estimate_rows


def test_rows_of_many_files_are_estimated_from_a_part_of_them(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number:03}.txt").write_text("a text of one line\n" * (10 + number % 3))

    estimate = estimate_rows(find_files(str(tmp_path), (".txt",)))

    true = sum(10 + number % 3 for number in range(100))
    assert estimate is not None
    assert abs(estimate - true) <= 0.02 * true


def test_a_few_files_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\none\ntwo\n")
    (tmp_path / "b.jsonl").write_text('{"text": "three"}\n')

    assert estimate_rows(find_files(str(tmp_path), (".csv", ".jsonl"))) == 3


def test_empty_files_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")

    assert estimate_rows(find_files(str(tmp_path), (".txt",))) is None

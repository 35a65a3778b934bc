"""Would more training change the paper's table? What is kept of comparisons, and the table made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reproduce import more_training
from reproduce.more_training import FOLDER, keep, read, table
from tests.reproduce.test_paper_table import line


def test_cells_of_comparisons_are_kept_and_those_with_plain_settings_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(more_training, "RAW", tmp_path / "kept.jsonl")
    files = []
    for number, settings in enumerate(("--settings some.yaml", "--settings plain")):
        files.append(tmp_path / f"{number}.jsonl")
        plan = json.dumps({"plan": {"command": f"dmin compare {settings} --out runs/{number}"}})
        cells = [line("banking77", "fair-01", "relation", [30 + number] * 300).line()]
        files[-1].write_text("\n".join([plan, *cells]) + "\n", encoding="utf-8")
    keep(files)
    assert [(cell.row.title, round(cell.result().mean, 9)) for cell in read()] == [(None, 0.6), ("random start", 0.62)]
    shown = table().splitlines()
    assert "| banking77 | Rel. Net |" in shown[2] and "| 60.0 |" in shown[2]
    assert "| banking77 | Rel. Net, random start |" in shown[3] and "| 62.0 |" in shown[3]


def test_the_committed_table_is_made_of_the_committed_cells() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"<!-- more -->\n{table()}\n<!-- end of more -->" in page
    assert {cell.trained_episodes > 1000 for cell in read()} == {True}

"""The page of the search spaces follows the registry."""

from __future__ import annotations

from pathlib import Path

import yaml

from dmin.methods import METHODS
from reproduce.paper_plan import CHOSEN
from reproduce.search_spaces import chosen_table, sweep_table, table

PAGE = Path(__file__).parents[2] / "reproduce" / "search" / "README.md"


def test_the_page_lists_the_declared_spaces() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")
    assert len(table().splitlines()) == len(METHODS) + 2
    assert "| `nearest` | 2 | `input_centre` off, on |  |" in table()
    assert "| `stage2.learning_rate` 3e-05; `tau_learning_rate` 0.03; `memory_capsules` 96, 128;" in table()


def test_the_page_tells_what_was_chosen() -> None:
    found = chosen_table(CHOSEN)
    assert found in PAGE.read_text(encoding="utf-8") and "| `dmin` | 12 | 49 |" in found


def test_the_page_tells_what_the_sweep_found() -> None:
    found = sweep_table(CHOSEN)
    assert found in PAGE.read_text(encoding="utf-8")
    assert "| `nearest` | 1 | -0.49 ± 0.26 | `input_centre` off | none |" in found


def test_trainings_begin_with_what_the_search_chose_beyond_its_interval() -> None:
    stored = yaml.safe_load(CHOSEN.read_text(encoding="utf-8"))["methods"]
    for name, method in METHODS.items():
        row = stored.get(name)
        plain = name in ("nearest", "logistic")  # train nothing, and stay as they are defined
        surely = row is not None and row["gain"] > row["gain_ci95"] and not plain
        assert dict(method.traits.searched) == (row["changed"] if surely else {}), name

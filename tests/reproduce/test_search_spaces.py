"""The page of the search spaces follows the registry."""

from __future__ import annotations

from pathlib import Path

from dmin.methods import METHODS
from reproduce.search_spaces import chosen_table, table

PAGE = Path(__file__).parents[2] / "reproduce" / "search" / "README.md"


def test_the_page_lists_the_declared_spaces() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")
    assert len(table().splitlines()) == len(METHODS) + 2
    assert "| `nearest` | 2 | `input_centre` off, on |" in table()


def test_the_page_tells_what_was_chosen() -> None:
    found = chosen_table(PAGE.with_name("chosen.yaml"))
    assert found in PAGE.read_text(encoding="utf-8") and "| `dmin` | 12 |" in found

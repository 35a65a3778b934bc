"""The marks between which commands put their tables stand in the pages, and the commands of a page exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reproduce.kinds_tables import TABLES

ROOT = Path(__file__).parents[2]
MARKS = [("reproduce/KINDS.md", kind) for kind in (*TABLES, "vectors", "memory", "votes")] + [
    ("README.md", "kinds"),
    ("reproduce/encoders.md", "kinds"),
    ("docs/how-to/encoders.md", "kinds"),
    ("docs/how-to/names.md", "names"),
    ("docs/how-to/unlabelled.md", "unlabelled"),
    ("docs/how-to/refusal.md", "refusal"),
    ("docs/explanation/probabilities.md", "calibration"),
]


@pytest.mark.parametrize(("page", "kind"), MARKS)
def test_a_table_has_its_place(page: str, kind: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text.count(f"<!-- {kind} -->") == text.count(f"<!-- end of {kind} -->") == 1
    assert text.index(f"<!-- {kind} -->") < text.index(f"<!-- end of {kind} -->")


def test_the_commands_of_the_page_are_those_of_the_program() -> None:
    page = (ROOT / "reproduce" / "KINDS.md").read_text(encoding="utf-8")
    program = (ROOT / "reproduce" / "kinds.py").read_text(encoding="utf-8")
    told = set(re.findall(r"python -m reproduce\.kinds ([a-z-]+)", page))
    assert told >= {"encode", "fit-constants", "cells", "uneven", "unlabelled", "pile", "refusal", "board", "table"}
    assert all(f'"{command}"' in program for command in told)


def test_what_is_said_of_the_papers_order_holds_no_figures_that_go_stale() -> None:
    """Its figures are made of the ledger, between marks; sentences around them hold none."""
    page = (ROOT / "reproduce" / "README.md").read_text(encoding="utf-8")
    section = page[page.index("### Does the paper's order hold?") : page.index("### How it was made")]
    said = re.sub(r"<!-- (\w+) -->.*?<!-- end of \1 -->", "", section, flags=re.DOTALL)
    assert len(said) < len(section) and not re.findall(r"\d\.\d|\d+ of \d+", said)

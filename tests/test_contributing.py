"""CONTRIBUTING tells the truth about the tree: files, layers, targets."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text under a heading of the second level."""
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


WHERE = [line for line in section("Where do I change ...").splitlines() if line.startswith("| ")][1:]


def test_the_table_covers_what_people_ask_for() -> None:
    asked = "\n".join(WHERE)
    for thing in ("refused", "optimizer", "file is read", "HTML report", "setting of `dmin train`"):
        assert thing in asked


@pytest.mark.parametrize("line", WHERE, ids=[line.split("|")[1].strip() for line in WHERE])
def test_the_named_files_exist(line: str) -> None:
    named = [name for name in re.findall(r"`([^`]+)`", line) if "/" in name]
    assert named, "a line of the table names no file"
    for name in named:
        assert (ROOT / name).exists(), name


def test_the_layers_are_those_that_import_linter_holds() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ][0]
    held = [{name.removeprefix("dmin.") for name in layer.split(" | ")} for layer in contract["layers"]]
    drawing = section("Layers").split("```text\n")[1].split("```")[0].splitlines()
    drawn = [set(re.split(r"\s{2,}", line)[0].split(" | ")) for line in drawing]
    assert drawn == held


def test_every_make_target_of_the_page_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    told = set(re.findall(r"`make ([a-z-]+)[ `]", PAGE))
    assert {"test", "test-fast", "docs", "release-check"} <= told
    for target in told:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target

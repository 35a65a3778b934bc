"""What the commands of `kinds.py` measured: one JSON line per task in runs/kinds, and the tables of KINDS.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dmin.files import write_atomic

OUT = Path("runs/kinds")
PAGE = Path(__file__).with_name("KINDS.md")
Line = dict[str, Any]


def restart(kind: str, sets: Sequence[str]) -> None:
    """Drop earlier lines of these sets, which are measured anew."""
    path = OUT / f"{kind}.jsonl"
    if path.is_file():
        kept = [json.dumps(line) for line in lines_of(kind) if line["set"] not in sets]
        write_atomic(path, "".join(line + "\n" for line in kept))


def write(kind: str, line: Line) -> None:
    """Add a line."""
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / f"{kind}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def lines_of(kind: str) -> list[Line]:
    """All lines of a kind."""
    path = OUT / f"{kind}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def grouped(lines: Sequence[Line], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Line]]:
    """Lines by the values of some keys, in the order in which they come."""
    found: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        found.setdefault(tuple(line[key] for key in keys), []).append(line)
    return found


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def points(difference: float) -> str:
    """A difference of accuracies in points with its sign; without one where it rounds to nothing."""
    text = f"{100 * difference:+z.1f}"
    return text.lstrip("+") if text == "+0.0" else text


def put_table(page: Path, kind: str, table: str) -> None:
    """Replace the text between `<!-- kind -->` and `<!-- end of kind -->` of a page."""
    text = page.read_text(encoding="utf-8")
    first, last = f"<!-- {kind} -->", f"<!-- end of {kind} -->"
    before, rest = text.split(first, 1)
    write_atomic(page, f"{before}{first}\n{table}\n{last}{rest.split(last, 1)[1]}")


def yes(value: bool) -> str:
    """A truth value in a table."""
    return "yes" if value else "no"

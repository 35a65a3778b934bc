"""`summary.json`: what a run achieved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dmin.evaluation.protocol import Cell
from dmin.files import write_json


def make_summary(method: str, data: str, split: str, cells: Sequence[Cell], **more: Any) -> dict[str, Any]:
    """Collect the cells; accuracies lie between 0 and 1."""
    return {"method": method, "data": data, "split": split, "cells": [cell.as_dict() for cell in cells], **more}


def write_summary(folder: Path, summary: dict[str, Any], cells: Sequence[Cell]) -> None:
    """Write `summary.json` and, beside it, each cell's per-class accuracy."""
    per_class = [
        {
            "method": cell.method,
            "way": cell.way,
            "shot": cell.shot,
            "classes": {name: {"accuracy": rate, "queries": n} for name, (rate, n) in cell.results.per_class().items()},
        }
        for cell in cells
    ]
    write_json(folder / "per_class.json", per_class)
    write_json(folder / "summary.json", summary)

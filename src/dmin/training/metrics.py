"""`metrics.jsonl`: one line per measurement, in order, also after a resume; TensorBoard as an option."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from dmin.errors import DataError, one_line
from dmin.files import check_document, parse_json, write_atomic


class MetricLine(BaseModel):
    """One line: stage, step, and what was measured."""

    model_config = ConfigDict(strict=True, extra="allow")
    __pydantic_extra__: dict[str, float]

    stage: int
    step: int


class MetricLog:
    """Appends measurements of a run; only the main process writes.

    Args:
        path: the file; None writes none.
        accelerator: knows the main process, and the trackers, if any.
    """

    def __init__(self, path: Path | None, accelerator: Any) -> None:
        self.path, self.accelerator = path, accelerator

    def write(self, stage: int, step: int, **values: float) -> None:
        """Append one line."""
        if self.path and self.accelerator.is_main_process:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"stage": stage, "step": step, **values}) + "\n")
        self.accelerator.log({f"stage{stage}/{name}": value for name, value in values.items()}, step=step)

    def rewind(self, stage: int, step: int) -> None:
        """Drop the lines after a checkpoint, because the updates they tell of will be done again."""
        if self.path and self.accelerator.is_main_process:
            kept = [m for m in read_metrics(self.path) if (m["stage"], m["step"]) <= (stage, step)]
            write_atomic(self.path, "".join(json.dumps(line) + "\n" for line in kept))


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Read the lines back; a last line that a crash cut short is left out."""
    try:
        written = path.read_bytes().split(b"\n") if path.is_file() else []
    except OSError as error:
        raise DataError(f"cannot read {path}: {one_line(error)}") from error
    lines = []
    for number, line in enumerate(written, 1):
        try:
            if line:
                source = f"{path}, line {number}"
                lines.append(check_document(parse_json(line, source), MetricLine, source).model_dump())
        except DataError as error:
            if number == len(written):  # without its line break: cut short
                break
            raise DataError(f"{error} (remove the line, or the file)") from error
    return lines

"""Raw results: the right answers of every episode of every cell, compactly, so that each figure can be recomputed.

A file has one JSON object per line: one per cell, after a first line with the plan where a comparison wrote it. The number
of right answers in each episode is stored as 16-bit integers, deflated, in base 64: about 400 characters per 300 episodes.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from dmin.errors import DataError
from dmin.evaluation.bench import JobResult
from dmin.evaluation.chosen_settings import ChosenSettings
from dmin.evaluation.comparison_plan import ComparisonPlan, Job, TableRow
from dmin.files import check_document, parse_json, write_atomic
from dmin.training import load_config
from dmin.training.train import Start

_MOST_EPISODES = 1_000_000
Count = Annotated[int, Field(ge=1)]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RowDocument(_Document):
    """A row of a table as it is stored; see `TableRow`."""

    name: str
    method: str
    options: dict[str, Any] = {}
    title: str | None = None
    settings: dict[str, Any] = {}
    start: Literal["stage1", "raw"] | None = None


class RawCell(_Document):
    """One cell: what was computed, by which code and settings (`key`), and the right answers of each episode."""

    key: str
    data: str
    split: str
    seed: Annotated[int, Field(ge=0)]
    row: RowDocument
    way: Count
    shot: Count
    queries: Count
    title: str
    right: str
    episode_hash: str
    train_classes: Count
    test_classes: Count
    trained_episodes: Annotated[int, Field(ge=0)]
    seconds: float
    peak_megabytes: float

    @classmethod
    def of(cls, result: JobResult, key: str, queries: int) -> RawCell:
        """The raw form of a result."""
        job = result.job
        counts = [round(accuracy * job.way * queries) for accuracy in result.accuracies]
        return cls(
            key=key, data=job.data, split=result.split_name, seed=job.seed, row=RowDocument(**asdict(job.row)),
            way=job.way, shot=job.shot, queries=queries, title=result.title, right=pack(counts),
            episode_hash=result.episode_hash, train_classes=result.train_classes, test_classes=result.test_classes,
            trained_episodes=result.trained_episodes, seconds=round(result.seconds, 6),
            peak_megabytes=round(result.peak_megabytes),
        )  # fmt: skip

    def result(self) -> JobResult:
        """The result with its accuracies by episode."""
        counts = unpack(self.right)
        total = self.way * self.queries
        if not counts or max(counts) > total:
            raise DataError(f"a raw cell of {self.data} {self.row.name}: {max(counts, default=0)} of {total} are right")
        job = Job(self.data, self.split, self.seed, TableRow(**self.row.model_dump()), self.way, self.shot)
        return JobResult(
            job, self.split, self.title, [count / total for count in counts], self.episode_hash, self.seconds,
            self.peak_megabytes, self.trained_episodes, self.train_classes, self.test_classes,
        )  # fmt: skip

    def line(self) -> str:
        """As one line of JSON."""
        return json.dumps(self.model_dump(), ensure_ascii=False, separators=(",", ":"))


class RawPlan(_Document):
    """The first line of a comparison's raw results."""

    title: str
    command: str
    base: dict[str, Any]
    data: tuple[str, ...]
    splits: tuple[str | None, ...]
    rows: tuple[RowDocument, ...]
    ways: tuple[int, ...]
    shots: tuple[int, ...]
    seeds: Count
    episodes: Count
    start: Literal["stage1", "raw"]
    reference: str
    names: bool
    settings: str | None = None  # the file of chosen settings, by name

    def plan(self) -> ComparisonPlan:
        """The plan of the comparison."""
        start: Start = self.start
        return ComparisonPlan(
            load_config(overrides=self.base), self.data, self.splits,
            tuple(TableRow(**row.model_dump()) for row in self.rows), self.ways, self.shots, self.seeds, self.episodes,
            start, self.reference, self.names, ChosenSettings(self.settings, {}) if self.settings else None,
        )  # fmt: skip


def pack(counts: Sequence[int]) -> str:
    """Right answers by episode as text."""
    return base64.b64encode(zlib.compress(np.asarray(counts, dtype="<u2").tobytes(), 9)).decode("ascii")


def unpack(text: str) -> list[int]:
    """The inverse of `pack`."""
    try:
        opened = zlib.decompressobj()
        data = opened.decompress(base64.b64decode(text, validate=True), 2 * _MOST_EPISODES)
        if not opened.eof:
            raise ValueError("too long")
        counts: list[int] = np.frombuffer(data, dtype="<u2").tolist()
    except (ValueError, zlib.error) as error:
        raise DataError("raw results are damaged: the right answers cannot be unpacked") from error
    return counts


def write_raw(path: Path, plan: ComparisonPlan, cells: Iterable[RawCell], title: str, command: str) -> None:
    """Write the raw results of a comparison."""
    rows = tuple(RowDocument(**asdict(row) | {"settings": plan.settings_of(row)}) for row in plan.rows)
    head = RawPlan(
        title=title, command=command, base=plan.base.model_dump(mode="json"), data=plan.data, splits=plan.splits,
        rows=rows, ways=plan.ways, shots=plan.shots,
        seeds=plan.seeds, episodes=plan.episodes, start=plan.start, reference=plan.reference, names=plan.names,
        settings=plan.chosen.name if plan.chosen else None,
    )  # fmt: skip
    first = json.dumps({"plan": head.model_dump(mode="json")}, ensure_ascii=False, separators=(",", ":"))
    write_atomic(path, "\n".join([first, *(cell.line() for cell in cells)]) + "\n")


def read_raw(path: Path) -> tuple[RawPlan | None, list[RawCell]]:
    """Read raw results: the plan, where a comparison wrote one, and the cells."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise DataError(f"no such file: {path}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path} as raw results: {type(error).__name__}") from error
    plan: RawPlan | None = None
    cells = []
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        value = parse_json(line, where)
        if number == 1 and isinstance(value, dict) and set(value) == {"plan"}:
            plan = check_document(value["plan"], RawPlan, where)
        else:
            cells.append(check_document(value, RawCell, where))
    return plan, cells

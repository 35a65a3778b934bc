"""The plan of a comparison: which rows in which settings on which data, and the key that names each result.

The unit is a job: one table row (a method with its options) in one setting (way, shot) on one data set, split and seed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from dmin.data.columns import Source
from dmin.files import file_digest
from dmin.methods import METHODS, method_class
from dmin.training import TrainConfig, load_config
from dmin.training.task import chosen_pooling
from dmin.training.train import Start
from dmin.version import __version__


@dataclass(frozen=True)
class TableRow:
    """A row of a table: a method with options, under a name of its own, and with settings that only it has."""

    name: str
    method: str
    options: dict[str, Any] = field(default_factory=dict)
    title: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One number to be found."""

    data: str
    split: str | None
    seed: int
    row: TableRow
    way: int
    shot: int

    @property
    def label(self) -> str:
        """As the progress display calls it."""
        return f"{self.data} {self.split or ''} {self.row.name} {self.way}-way {self.shot}-shot"


@dataclass(frozen=True)
class PreparedJob:
    """A job with its settings and the key of its result."""

    job: Job
    config: TrainConfig
    key: str


@dataclass(frozen=True)
class ComparisonPlan:
    """What to compare; `base` holds all settings that the rows share."""

    base: TrainConfig
    data: tuple[str, ...]
    splits: tuple[str | None, ...]
    rows: tuple[TableRow, ...]
    ways: tuple[int, ...] = (5, 10)
    shots: tuple[int, ...] = (1, 5)
    seeds: int = 1
    episodes: int = 300
    start: Start = "stage1"
    reference: str = "dmin"
    names: bool = False  # does every row get the classes' names, each as one more example?

    def jobs(self) -> Iterator[Job]:
        """All jobs, those that share an encoder and a stage 1 together."""
        for data in self.data:
            for split in self.splits:
                for seed in range(self.seeds):
                    for way in self.ways:
                        for shot in self.shots:
                            for row in self.rows:
                                yield Job(data, split, seed, row, way, shot)

    def prepare(self) -> list[PreparedJob]:
        """All jobs with settings and keys; each file of the user is read once."""
        digest = cache(file_digest)
        prepared = []
        for job in self.jobs():
            config = self._config(job)
            files = {"file": Source.parse(job.data).path}
            files |= {f"exclude {name}": Source.parse(name).path for name in config.exclude}
            # An edited file is other data.
            digests = {name: digest(path) for name, path in files.items() if path.is_file()}
            prepared.append(PreparedJob(job, config, self._key(job, config, digests)))
        return prepared

    def _config(self, job: Job) -> TrainConfig:
        values = self.base.model_dump()
        values |= {
            "data": job.data, "split": job.split, "seed": job.seed, "way": job.way, "shot": job.shot,
            "method": job.row.method, "options": job.row.options,
        }  # fmt: skip
        if self.names:
            values["stage2"] |= {"names": 1.0}
        return load_config(overrides=values | job.row.settings)

    def _key(self, job: Job, config: TrainConfig, digests: dict[str, str]) -> str:
        """Names everything that decides a job's result: settings that are not the defaults, files and the version."""
        settings = config.model_dump(mode="json", exclude_defaults=True)
        content = {**settings, "method": job.row.method, "episodes": self.episodes, "start": self.start, **digests}
        content["version"] = __version__
        content.pop("pooling", None)
        if (pooling := chosen_pooling(config)) != "auto":
            content["pooling"] = pooling  # as it will be, whoever chose it
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def standard_rows(names: Sequence[str]) -> tuple[TableRow, ...]:
    """Rows of methods by name; "all" is every method there is."""
    chosen = list(METHODS) if list(names) == ["all"] else list(names)
    return tuple(TableRow(method_class(name).name, name) for name in chosen)

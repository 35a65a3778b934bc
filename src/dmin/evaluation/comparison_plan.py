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
from dmin.errors import ConfigError
from dmin.evaluation.chosen_settings import ChosenSettings
from dmin.evaluation.code_digest import code_digest
from dmin.files import file_digest
from dmin.methods import METHODS, FineTunesEncoder, method_class
from dmin.training import TrainConfig, load_config
from dmin.training.config import searched_settings
from dmin.training.task import chosen_pooling
from dmin.training.train import Start

FINE_TUNED_EPISODES = 50  # full fine-tuning takes so long that it gets the first of the stored episodes only


@dataclass(frozen=True)
class TableRow:
    """A row of a table: a method with options, under a name of its own, and with settings that only it has."""

    name: str
    method: str
    options: dict[str, Any] = field(default_factory=dict)
    title: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    start: Start | None = None  # where its training starts; None: where those of the plan do


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
    reference: str = "nearest"
    names: bool = False  # does every row get the classes' names, each as one more example?
    chosen: ChosenSettings | None = None  # what a search chose for each method
    fine_tuned_episodes: int | None = FINE_TUNED_EPISODES  # test episodes of full fine-tuning, at most; None: all

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

    def start_of(self, job: Job) -> Start:
        """Where the training of a job starts."""
        return job.row.start or self.start

    def _config(self, job: Job) -> TrainConfig:
        values = self.base.model_dump()
        values |= {
            "data": job.data, "split": job.split, "seed": job.seed, "way": job.way, "shot": job.shot,
            "method": job.row.method, "options": dict(job.row.options),
        }  # fmt: skip
        values |= self._chosen(job.row)
        if self.names:
            values["stage2"] |= {"names": 1.0}
        return load_config(overrides=values | job.row.settings)

    def settings_of(self, row: TableRow) -> dict[str, Any]:
        """The settings that only this row has: what a search chose for its method, and its own."""
        return {**self._chosen(row), **row.settings}

    def _chosen(self, row: TableRow) -> dict[str, Any]:
        """What a search chose for the row's method, but for what the row or the settings of all rows say."""
        own = {f"options.{name}" for name in row.options}
        if self.chosen is not None:
            return {key: value for key, value in self.chosen.of(row.method).items() if key not in own}
        base = self.base
        given = {"method": row.method, "tune": base.tune, "encoder": base.encoder, "options": row.options}
        given |= row.settings
        rates = {f"stage2.{name}" for name, value in base.stage2 if value is not None}
        return {key: value for key, value in searched_settings(given).items() if key not in own | rates}

    def _key(self, job: Job, config: TrainConfig, digests: dict[str, str]) -> str:
        """Names everything that decides a job's result: settings, files, and the code that computes."""
        settings = _set_ones(config.model_dump(mode="json", exclude={"tensorboard", "test_episodes", "device"}))
        content = {
            **settings, "options": config.options, "episodes": self.episodes, "start": self.start_of(job), **digests,
        }  # fmt: skip
        if config.tune != "none" and issubclass(method_class(config.method), FineTunesEncoder):
            content["fine_tuned_episodes"] = self.fine_tuned_episodes
        content |= {"code": code_digest(job.row.method)}
        content.pop("pooling", None)
        if (pooling := chosen_pooling(config)) != "auto":
            content["pooling"] = pooling  # as it will be, whoever chose it
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def standard_rows(names: Sequence[str]) -> tuple[TableRow, ...]:
    """Rows of methods by name; "all" is every method there is, NAME:raw a method on the encoder as it came."""
    chosen = [one for name in names for one in (METHODS if name == "all" else [name])]
    return tuple(_row(name) for name in dict.fromkeys(chosen))


def _row(name: str) -> TableRow:
    method, colon, start = name.partition(":")
    if not colon:
        return TableRow(method_class(method).name, method)
    if start != "raw":
        raise ConfigError(f"--methods {name!r}: after the colon only raw is known, like finetune:raw")
    return TableRow(f"{method}-raw", method, title=f"{method_class(method).title} (raw encoder)", start="raw")


def _set_ones(values: dict[str, Any]) -> dict[str, Any]:
    """Settings without those that are None, off or empty, so that a later version may add some.

    Defaults stay in: a default that changes makes another cell.
    """
    inner = {key: _set_ones(value) if isinstance(value, dict) else value for key, value in values.items()}
    return {
        key: value for key, value in inner.items() if not (value is None or value is False or value in ({}, [], ()))
    }

"""Comparisons: every row trained from the same start, on the same budget, tested on the same stored episodes.

Each finished job is a file, so an interrupted comparison goes on where it stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from dmin.data import Corpus
from dmin.errors import ConfigError, DataError, DminError
from dmin.evaluation.bench import Bench, JobResult
from dmin.evaluation.comparison_plan import ComparisonPlan, Job, PreparedJob
from dmin.evaluation.protocol import draw_episodes
from dmin.evaluation.raw import RawCell
from dmin.files import read_document, safe_name, write_json
from dmin.progress import progress
from dmin.training import open_corpus, open_encoder, prepare_task
from dmin.training.task import check_method, chosen_pooling

_STORED = (
    "split_name", "title", "accuracies", "episode_hash", "seconds", "peak_megabytes", "trained_episodes", "train_classes",
    "test_classes",
)  # fmt: skip


class CellDocument(BaseModel):
    """What is read of a finished job's file."""

    model_config = ConfigDict(strict=True)

    split_name: str
    title: str
    accuracy: float
    accuracies: Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1)]
    episode_hash: str
    seconds: float
    peak_megabytes: float
    trained_episodes: int
    train_classes: Annotated[int, Field(ge=1)]
    test_classes: Annotated[int, Field(ge=1)]


class Comparison:
    """Runs the jobs of a plan into a folder.

    Settings, keys and finished results are read once, when the comparison is made, and kept in memory.

    Args:
        plan: what to compare.
        out: where finished jobs are kept.
        warn: called with each warning.
        show: show progress over the jobs.
    """

    def __init__(self, plan: ComparisonPlan, out: Path, *, warn: Callable[[str], None], show: bool = False) -> None:
        self.plan, self.out, self.warn, self.show = plan, out, warn, show
        self._said: set[str] = set()
        self._jobs = plan.prepare()
        self._results = [self._stored(prepared) for prepared in self._jobs]  # None: not made yet
        self._corpora: dict[str, Corpus] = {}

    def results(self) -> list[JobResult]:
        """The results of the finished jobs."""
        return [result for result in self._results if result is not None]

    def raw(self) -> list[RawCell]:
        """The finished jobs in the form in which they can be kept and published."""
        pairs = zip(self._jobs, self._results, strict=True)
        return [RawCell.of(result, job.key, job.config.queries) for job, result in pairs if result is not None]

    def missing(self) -> list[Job]:
        """The jobs that are not finished."""
        return [self._jobs[number].job for number in self._missing()]

    def check(self) -> None:
        """Raise the first mistake that any job holds, before any training."""
        widths: dict[str, int] = {}
        for prepared in self._jobs:
            job, config = prepared.job, prepared.config
            corpus = self._corpus(prepared)
            try:
                task = prepare_task(config, self._warn_once, corpus)
                if (pooling := chosen_pooling(config)) not in widths:
                    widths[pooling] = open_encoder(config).width
                check_method(config, task, widths[pooling])
                draw_episodes(task.corpus, task.split.test, job.way, job.shot, config.queries, 1)
            except DminError as error:
                raise ConfigError(f"{job.label}: {error}") from error

    def run(self, after_setting: Callable[[], None] = lambda: None) -> list[JobResult]:
        """Do the missing jobs, one group of shared encoder and stage 1 after another.

        Args:
            after_setting: called when all rows of a data set, split, seed, way and shot are done.
        """
        missing = self._missing()
        settings = [_setting(self._jobs[number].job) for number in missing]
        total = len(self._jobs)
        benches: dict[str, Bench] = {}  # of one group, by pooling and start
        with progress("comparing", total, unit="cells", done=total - len(missing), show=self.show) as advance:
            for place, number in enumerate(missing):
                prepared = self._jobs[number]
                advance(0, now=prepared.job.label)
                result = self._bench(benches, prepared).run(prepared, self.out / "episodes")
                self._store(prepared, result)
                self._results[number] = result
                if settings[place] not in settings[place + 1 : place + 2]:
                    after_setting()
                advance()
        return self.results()

    def _bench(self, benches: dict[str, Bench], prepared: PreparedJob) -> Bench:
        """The bench of a job; those of another group are dropped."""
        job = prepared.job
        if any(bench.group != (job.data, job.split, job.seed) for bench in benches.values()):
            benches.clear()
        key = f"{chosen_pooling(prepared.config)} {self.plan.start_of(job)}"
        if key not in benches:
            benches[key] = Bench(self.plan, prepared, self._corpus(prepared), self._warn_once)
        return benches[key]

    def _corpus(self, prepared: PreparedJob) -> Corpus:
        if prepared.job.data not in self._corpora:
            self._corpora[prepared.job.data] = open_corpus(prepared.config)
        return self._corpora[prepared.job.data]

    def _missing(self) -> list[int]:
        return [number for number, result in enumerate(self._results) if result is None]

    def _warn_once(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self.warn(message)

    def _path(self, prepared: PreparedJob) -> Path:
        job = prepared.job
        setting = f"{Path(job.data).stem}-{job.split or 'split'}-seed{job.seed}-{job.way}way{job.shot}shot"
        return self.out / "cells" / (safe_name(f"{setting}-{job.row.name}-{prepared.key}") + ".json")

    def _stored(self, prepared: PreparedJob) -> JobResult | None:
        path = self._path(prepared)
        if not path.is_file():
            return None
        try:
            stored = read_document(path, CellDocument)
        except DataError as error:
            self._warn_once(f"{path} is damaged and will be made again: {error}")
            return None
        found = JobResult(prepared.job, **{name: getattr(stored, name) for name in _STORED})
        if not math.isclose(found.mean, stored.accuracy, abs_tol=1e-9):
            self._warn_once(f"{path} is damaged and will be made again: its accuracy is not the mean of its episodes")
            return None
        return found

    def _store(self, prepared: PreparedJob, result: JobResult) -> None:
        job = result.job
        write_json(
            self._path(prepared),
            {
                "data": job.data, "split_name": result.split_name, "seed": job.seed, "row": job.row.name,
                "method": job.row.method, "options": job.row.options, "way": job.way, "shot": job.shot,
                "title": result.title, "accuracy": result.mean, "seconds": result.seconds,
                "peak_megabytes": result.peak_megabytes, "trained_episodes": result.trained_episodes,
                "train_classes": result.train_classes, "test_classes": result.test_classes,
                "episode_hash": result.episode_hash, "config": prepared.config.model_dump(mode="json"),
                "accuracies": result.accuracies,
            },
        )  # fmt: skip


def _setting(job: Job) -> tuple[str, str | None, int, int, int]:
    return job.data, job.split, job.seed, job.way, job.shot

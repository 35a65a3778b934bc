"""Comparisons: every row trained from the same start, on the same budget, tested on the same stored episodes.

The unit is a job: one row (a method with its options) in one setting (way, shot) on one data set, split and seed. Each
finished job is a file, so an interrupted comparison goes on where it stopped.
"""

from __future__ import annotations

import copy
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dmin.data import Corpus, EpisodeList, load_corpus
from dmin.encoder import Encoder
from dmin.errors import ConfigError, DataError, DminError
from dmin.evaluation.protocol import FineTuneScorer, MethodScorer, Scorer, draw_episodes, run_episodes
from dmin.evaluation.resources import peak_memory, reset_peak_memory
from dmin.files import file_digest, read_json, write_json
from dmin.methods import FewShotMethod, FineTunesEncoder, method_class
from dmin.methods.base import Inputs
from dmin.progress import progress
from dmin.training import TrainConfig, load_config
from dmin.training.loop import Loop
from dmin.training.lora import add_lora
from dmin.training.metrics import MetricLog
from dmin.training.pipeline import make_accelerator
from dmin.training.sources import TextSource
from dmin.training.stages import (
    BaseKnowledge,
    build_head,
    chosen_pooling,
    open_encoder,
    open_source,
    train_stage1,
    train_stage2,
)
from dmin.training.task import Task, check_method, prepare_task
from dmin.version import __version__

Start = Literal["stage1", "raw"]
FINE_TUNED_EPISODES = 50  # full fine-tuning takes so long that it gets the first of the stored episodes only


@dataclass(frozen=True)
class Row:
    """A line of a table: a method with options, under a name of its own, and with settings that only it has."""

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
    row: Row
    way: int
    shot: int

    @property
    def label(self) -> str:
        """As the progress display calls it."""
        return f"{self.data} {self.split or ''} {self.row.name} {self.way}-way {self.shot}-shot"


@dataclass(frozen=True)
class ComparisonPlan:
    """What to compare; `base` holds all settings that the rows share."""

    base: TrainConfig
    data: tuple[str, ...]
    splits: tuple[str | None, ...]
    rows: tuple[Row, ...]
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

    def config(self, job: Job) -> TrainConfig:
        """The settings of one job."""
        values = self.base.model_dump()
        values |= {
            "data": job.data, "split": job.split, "seed": job.seed, "way": job.way, "shot": job.shot,
            "method": job.row.method, "options": job.row.options,
        }  # fmt: skip
        if self.names:
            values["stage2"] |= {"names": 1.0}
        return load_config(overrides=values | job.row.settings)

    def key(self, job: Job) -> str:
        """Names everything that decides a job's result: settings that are not the defaults, and the version."""
        settings = self.config(job).model_dump(mode="json", exclude_defaults=True)
        content = {**settings, "method": job.row.method, "episodes": self.episodes, "start": self.start}
        content["version"] = __version__
        content.pop("pooling", None)
        if (pooling := chosen_pooling(self.config(job))) != "auto":
            content["pooling"] = pooling  # as it will be, whoever chose it
        if Path(job.data).is_file():
            content["file"] = file_digest(Path(job.data))  # an edited file is other data
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class JobResult:
    """What a job found."""

    job: Job
    split_name: str
    title: str
    accuracies: list[float]
    episode_hash: str
    seconds: float
    peak_megabytes: float
    trained_episodes: int

    @property
    def mean(self) -> float:
        """Mean accuracy over the episodes."""
        return sum(self.accuracies) / len(self.accuracies)


class Comparison:
    """Runs the jobs of a plan into a folder.

    Args:
        plan: what to compare.
        out: where finished jobs are kept.
        warn: told what deserves a look.
        show: show progress over the jobs.
    """

    def __init__(self, plan: ComparisonPlan, out: Path, *, warn: Callable[[str], None], show: bool = False) -> None:
        self.plan, self.out, self.warn, self.show = plan, out, warn, show
        self._said: set[str] = set()

    def results(self) -> list[JobResult]:
        """The jobs that are finished."""
        found = (self._stored(job) for job in self.plan.jobs())
        return [result for result in found if result is not None]

    def missing(self) -> list[Job]:
        """The jobs that are not."""
        return [job for job in self.plan.jobs() if self._stored(job) is None]

    def check(self) -> None:
        """Raise the first mistake any job holds, before any training."""
        corpora: dict[str, Corpus] = {}
        widths: dict[str, int] = {}
        for job in self.plan.jobs():
            config = self.plan.config(job)
            if job.data not in corpora:
                corpora[job.data] = _corpus(self.plan, job)
            try:
                task = prepare_task(config, self._warn_once, corpora[job.data])
                if (pooling := chosen_pooling(config)) not in widths:
                    widths[pooling] = _encoder(config).width
                check_method(config, task, widths[pooling])
                draw_episodes(task.corpus, task.split.test, job.way, job.shot, config.queries, 1)
            except DminError as error:
                raise ConfigError(f"{job.label}: {error}") from error

    def run(self, after_each: Callable[[], None] = lambda: None) -> list[JobResult]:
        """Do the missing jobs, one group of shared encoder and stage 1 after another."""
        missing = self.missing()
        total = len(list(self.plan.jobs()))
        benches: dict[str, _Bench] = {}  # of one group, by pooling
        with progress("comparing", total, unit="cells", done=total - len(missing), show=self.show) as advance:
            for job in missing:
                advance(0, now=job.label)
                pooling = chosen_pooling(self.plan.config(job))
                if any(bench.group != (job.data, job.split, job.seed) for bench in benches.values()):
                    benches.clear()
                if pooling not in benches:
                    benches[pooling] = _Bench(self.plan, job, self._warn_once)
                self._store(benches[pooling].run(job, self.out / "episodes"))
                after_each()
                advance()
        return self.results()

    def _warn_once(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self.warn(message)

    def _path(self, job: Job) -> Path:
        data = Path(job.data).stem
        split = job.split or "split"
        name = f"{data}-{split}-seed{job.seed}-{job.way}way{job.shot}shot-{job.row.name}-{self.plan.key(job)}.json"
        return self.out / "cells" / name

    def _stored(self, job: Job) -> JobResult | None:
        path = self._path(job)
        if not path.is_file():
            return None
        try:
            stored = read_json(path)
            fields = (
                "split_name",
                "title",
                "accuracies",
                "episode_hash",
                "seconds",
                "peak_megabytes",
                "trained_episodes",
            )
            return JobResult(job, **{name: stored[name] for name in fields})
        except (DataError, KeyError, TypeError):
            self._warn_once(f"{path} is damaged: it will be made again")
            return None

    def _store(self, result: JobResult) -> None:
        job = result.job
        write_json(
            self._path(job),
            {
                "data": job.data, "split_name": result.split_name, "seed": job.seed, "row": job.row.name,
                "method": job.row.method, "options": job.row.options, "way": job.way, "shot": job.shot,
                "title": result.title, "accuracy": result.mean, "seconds": result.seconds,
                "peak_megabytes": result.peak_megabytes, "trained_episodes": result.trained_episodes,
                "episode_hash": result.episode_hash, "config": self.plan.config(job).model_dump(mode="json"),
                "accuracies": result.accuracies,
            },
        )  # fmt: skip


class _Bench:
    """What the jobs of one data set, split, seed and pooling share: the encoder, its stage 1, encoded texts."""

    def __init__(self, plan: ComparisonPlan, job: Job, warn: Callable[[str], None]) -> None:
        self.plan, self.group, self.warn = plan, (job.data, job.split, job.seed), warn
        # (A BiLSTM starts alike for every seed of the trainings.)
        self.encoder = _encoder(plan.config(job).model_copy(update={"seed": plan.base.seed}))
        self.corpus = _corpus(plan, job)
        self.accelerator = make_accelerator(plan.base)
        self.loop = Loop(
            self.accelerator, None, MetricLog(None, self.accelerator), show=False, resume_hint="the same command"
        )
        if plan.base.tune == "lora":
            add_lora(self.encoder.network, job.seed)
        self._knowledge: BaseKnowledge | None = None
        self._start: dict[str, Any] = {}
        self._sources: dict[str, TextSource] = {}

    def run(self, job: Job, episodes_folder: Path) -> JobResult:
        """Train (where there is something to train) and test one row in one setting."""
        config = self.plan.config(job)
        task = prepare_task(config, self.warn, self.corpus)
        counts = f"{job.way}way{job.shot}shot-{config.queries}queries-{self.plan.episodes}episodes"
        stored = episodes_folder / f"{self.corpus.name}-{task.split_name}-{counts}.json"
        episodes = draw_episodes(
            self.corpus, task.split.test, job.way, job.shot, config.queries, self.plan.episodes, stored
        )
        knowledge = self._stage1(config, task)
        reset_peak_memory()
        began = time.perf_counter()
        self._restore()
        method = build_head(config, task, self.encoder.width, knowledge)
        trained = 0
        if method.traits.meta_trained:
            source = self._source(config, task, method, ("train", "valid"))
            trained = train_stage2(config, task, source, self.encoder, method, self.loop).step * config.stage2.batch
        scorer, used = self._scorer(config, task, method.eval(), episodes)
        results = run_episodes(scorer, used, description=job.label)
        return JobResult(
            job, task.split_name, self._title(job, method, len(used)), results.accuracies, used.hash,
            time.perf_counter() - began, peak_memory(), trained,
        )  # fmt: skip

    def _stage1(self, config: TrainConfig, task: Task) -> BaseKnowledge:
        """Once for all rows; with a raw start the encoder rests and only the memory is learned."""
        if self._knowledge is None:
            learning = config.model_copy(update={"tune": "none"}) if self.plan.start == "raw" else config
            source = open_source(learning, task, self.encoder, ("train", "valid"), frozen=learning.tune == "none")
            self._knowledge = train_stage1(learning, task, source, self.encoder, self.loop)
            if config.tune != "none":
                self._start = copy.deepcopy(self.encoder.network.state_dict())
        return self._knowledge

    def _restore(self) -> None:
        """Every row starts from the same encoder."""
        if self._start:
            self.encoder.network.load_state_dict(self._start)
            self.encoder.refresh()

    def _source(self, config: TrainConfig, task: Task, method: FewShotMethod, parts: tuple[str, ...]) -> TextSource:
        kind: Inputs = "tokens" if method.inputs == "tokens" else "vectors"
        frozen = config.tune == "none"
        if not frozen:
            return open_source(config, task, self.encoder, parts, kind=kind, frozen=False)
        if kind not in self._sources:  # the encoder rests: one table serves every row
            everything = ("train", "valid", "test")
            self._sources[kind] = open_source(config, task, self.encoder, everything, kind=kind, frozen=True)
        return self._sources[kind]

    def _scorer(
        self, config: TrainConfig, task: Task, method: FewShotMethod, episodes: EpisodeList
    ) -> tuple[Scorer, EpisodeList]:
        source = self._source(config, task, method, ("test",))
        if isinstance(method, FineTunesEncoder) and config.tune != "none":
            some = EpisodeList(episodes.corpus_fingerprint, episodes.episodes[:FINE_TUNED_EPISODES])
            return FineTuneScorer(method, self.encoder.network, source), some
        if not self.plan.names:
            return MethodScorer(method, source.snapshot(task.rows("test"))), episodes
        texts = source.snapshot([*task.rows("test"), *task.name_rows.values()])
        return MethodScorer(method, texts, task.name_rows), episodes

    def _title(self, job: Job, method: FewShotMethod, episodes: int) -> str:
        title = job.row.title or method_class(job.row.method).title
        if self.plan.base.tune == "none":
            title = method.traits.frozen_title or title
        elif isinstance(method, FineTunesEncoder):
            title = f"{title} ({episodes} episodes)"
        return f"{title} ({method.note})" if method.note else title


def _encoder(config: TrainConfig) -> Encoder:
    if config.encoder != "bilstm":
        return open_encoder(config)
    from dmin.encoder.bilstm import bilstm_encoder

    return bilstm_encoder(max_length=config.max_length, seed=config.seed, device=config.device)


def _corpus(plan: ComparisonPlan, job: Job) -> Corpus:
    return load_corpus(job.data, text_column=plan.base.text_column, label_column=plan.base.label_column)


def standard_rows(names: Sequence[str]) -> tuple[Row, ...]:
    """Rows of methods by name; "all" is every method there is."""
    from dmin.methods import METHODS

    chosen = list(METHODS) if list(names) == ["all"] else list(names)
    return tuple(Row(method_class(name).name, name) for name in chosen)

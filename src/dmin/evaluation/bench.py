"""The bench of a comparison: trains and tests the rows of one data set, split, seed and pooling on one encoder."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dmin.data import Corpus, EpisodeList
from dmin.encoder.opening import tunable
from dmin.evaluation.comparison_plan import ComparisonPlan, Job, PreparedJob
from dmin.evaluation.protocol import FineTuneScorer, MethodScorer, Scorer, draw_episodes, run_episodes
from dmin.files import safe_name
from dmin.methods import FewShotMethod, FineTunesEncoder, method_class
from dmin.training import Task, TrainConfig, open_encoder, prepare_task
from dmin.training.loop import Loop
from dmin.training.metrics import MetricLog
from dmin.training.sources import source_kind
from dmin.training.train import HeadTrainer, make_accelerator

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


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
    train_classes: int  # of the split
    test_classes: int

    @property
    def mean(self) -> float:
        """Mean accuracy over the episodes."""
        return sum(self.accuracies) / len(self.accuracies)


class Bench:
    """What the jobs of one data set, split, seed and pooling share: the encoder, its stage 1, encoded texts.

    Args:
        plan: the comparison.
        first: the first of the jobs.
        corpus: its data.
        warn: called with each warning.
    """

    def __init__(self, plan: ComparisonPlan, first: PreparedJob, corpus: Corpus, warn: Callable[[str], None]) -> None:
        self.plan, self.corpus, self.warn = plan, corpus, warn
        self.group = (first.job.data, first.job.split, first.job.seed)
        accelerator = make_accelerator(plan.base)
        loop = Loop(accelerator, None, MetricLog(None, accelerator), show=False, resume_hint="the same command")
        # (A BiLSTM starts alike for every seed of the trainings.)
        encoder = open_encoder(first.config.model_copy(update={"seed": plan.base.seed}))
        self.trainer = HeadTrainer(encoder, loop, first.config, start=plan.start_of(first.job), several=True)

    def run(self, prepared: PreparedJob, episodes_folder: Path) -> JobResult:
        """Train (where there is something to train) and test one row in one setting."""
        job, config = prepared.job, prepared.config
        task = prepare_task(config, self.warn, self.corpus)
        counts = f"{job.way}way{job.shot}shot-{config.queries}queries-{self.plan.episodes}episodes"
        stored = episodes_folder / (safe_name(f"{self.corpus.name}-{task.split_name}-{counts}") + ".json")
        episodes = draw_episodes(
            self.corpus, task.split.test, job.way, job.shot, config.queries, self.plan.episodes, stored
        )
        self.trainer.learn_base(config, task)  # shared by the rows, so not in the cost of one
        reset_peak_memory()
        began = time.perf_counter()
        method, trained = self.trainer.train(config, task)
        scorer, used = self._scorer(config, task, method, episodes)
        results = run_episodes(scorer, used, description=job.label)
        return JobResult(
            job, task.split_name, self._title(job, method, len(used)), results.accuracies, used.hash,
            time.perf_counter() - began, peak_memory(), trained, len(task.split.train), len(task.split.test),
        )  # fmt: skip

    def _scorer(
        self, config: TrainConfig, task: Task, method: FewShotMethod, episodes: EpisodeList
    ) -> tuple[Scorer, EpisodeList]:
        parts = self.trainer.parts(config) if config.tune == "none" else ("test",)
        source = self.trainer.source(config, task, source_kind(method), parts)
        if isinstance(method, FineTunesEncoder) and config.tune != "none":
            some = EpisodeList(episodes.corpus_fingerprint, episodes.episodes[: self.plan.fine_tuned_episodes])
            return FineTuneScorer(method, tunable(self.trainer.encoder).network, source), some
        if not self.plan.names:
            return MethodScorer(method, source.snapshot(task.text_indices("test"))), episodes
        texts = source.snapshot([*task.text_indices("test"), *task.name_rows.values()])
        return MethodScorer(method, texts, task.name_rows), episodes

    def _title(self, job: Job, method: FewShotMethod, episodes: int) -> str:
        title = job.row.title or method_class(job.row.method).title
        if self.plan.base.tune == "none":
            title = method.traits.frozen_title or title
        elif isinstance(method, FineTunesEncoder):
            title = f"{title} ({episodes} episodes)"
        return f"{title} ({method.note})" if method.note else title


def reset_peak_memory() -> None:
    """Forget the peak so far (Linux); elsewhere the peak is that of the whole process."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


def peak_memory() -> float:
    """Highest resident memory since the last reset, in megabytes."""
    try:
        lines = _STATUS.read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return used / (1024 * 1024 if sys.platform == "darwin" else 1024)

"""The whole road: data and encoder, stage 1, stage 2, a model folder; resumable at every point."""

from __future__ import annotations

import shlex
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from dmin.data import ClassSplit, Corpus, EpisodeList, EpisodeSampler, choose_split, load_corpus
from dmin.encoder import Encoder, VectorCache
from dmin.errors import ConfigError, DataError, unknown_name
from dmin.files import write_atomic
from dmin.methods import create, method_class
from dmin.methods.base import check_options
from dmin.training.checkpoint import Checkpoint, CheckpointStore
from dmin.training.config import TrainConfig, differences, load_config
from dmin.training.loop import Loop, LoopSettings
from dmin.training.lora import add_lora, merge_lora
from dmin.training.meta import EpisodeNetwork, MetaStage
from dmin.training.metrics import MetricLog
from dmin.training.model import HeadInfo, TrainedModel, base_rows, save_model
from dmin.training.precision import pays_bf16
from dmin.training.sources import TextSource
from dmin.training.supervised import BaseClassifier, SupervisedStage, memory_from

# Validation episodes draw by a seed of their own, away from the training episodes.
VALIDATION_SEED = 1_000_003


@dataclass(frozen=True)
class Task:
    """The data side of a run, checked before anything is written."""

    corpus: Corpus
    split_name: str
    split: ClassSplit
    base_classes: tuple[str, ...]
    sampler: EpisodeSampler
    validation: EpisodeList

    def rows(self, *parts: str) -> list[int]:
        """Indices of all texts of the classes of some parts."""
        return [row for part in parts for label in self.split.part(part) for row in self.corpus.by_class[label]]


def prepare_task(config: TrainConfig, warn: Callable[[str], None]) -> Task:
    """Load the data, choose classes and draw the validation episodes; all that can be wrong is found here."""
    method = method_class(config.method)
    check_options(method, config.options, reserved={"base_memory", "seed", "dim", "way", "shot"})
    corpus = load_corpus(config.data, text_column=config.text_column, label_column=config.label_column)
    split_name, split = choose_split(corpus, config.split, config.split_seed, config.split_sizes)
    base = choose_base(config, split)
    drawn = split.train if config.episode_classes == "all" else tuple(c for c in split.train if c not in base)
    sampler = EpisodeSampler(corpus, drawn, config.way, config.shot, config.queries, config.seed)
    if sampler.left_out:
        warn(_left_out(sampler, "training"))
    enough, _ = corpus.large_enough(split.valid, config.shot + config.queries)
    way = min(config.way, len(enough))
    if way < 2:
        raise DataError(
            f"{corpus.name}: validation needs 2 classes of {config.shot} + {config.queries} texts; split {split_name} "
            f"has {len(enough)}. Choose another split, or lower --shot or --queries"
        )
    if way < config.way:
        warn(f"only {way} validation classes are large enough: validating {way}-way instead of {config.way}-way")
    judge = EpisodeSampler(corpus, split.valid, way, config.shot, config.queries, VALIDATION_SEED + config.seed)
    return Task(corpus, split_name, split, base, sampler, judge.take(config.stage2.validation_episodes))


def choose_base(config: TrainConfig, split: ClassSplit) -> tuple[str, ...]:
    """The classes of the memory, in row order."""
    chosen = config.base_classes
    if chosen == "all":
        return split.train
    if isinstance(chosen, int):
        if not 0 < chosen <= len(split.train):
            raise ConfigError(f"base_classes {chosen}: the split has {len(split.train)} training classes")
        order = np.random.default_rng([config.seed, 2]).permutation(len(split.train))[:chosen]
        return tuple(split.train[index] for index in sorted(order))
    for label in chosen:
        if label not in split.train:
            raise unknown_name("base class", label, split.train)
    return tuple(chosen)


class Trainer:
    """Trains one configuration into one run folder.

    Args:
        config: what to do.
        out: the run folder.
        resume: go on from the folder's checkpoints.
        overwrite: begin anew in a folder that holds a run.
        show: show progress.
        warn: told what deserves a look; printed by the commands.
    """

    def __init__(
        self,
        config: TrainConfig,
        out: Path,
        *,
        resume: bool = False,
        overwrite: bool = False,
        show: bool = False,
        warn: Callable[[str], None] = warnings.warn,
    ) -> None:
        self.config, self.out, self.show, self.warn = config, out, show, warn
        self.resume = resume
        self._check_folder(overwrite)
        self.task = prepare_task(config, warn)
        self.encoder = Encoder(
            config.encoder, pooling=config.pooling, max_length=config.max_length, device=config.device
        )

    def run(self) -> TrainedModel:
        """Train both stages, write `model/`, return the trained model."""
        accelerator = make_accelerator(self.config, self.out)
        # Each process would find the other's folder half made: the main one goes first.
        with accelerator.main_process_first():
            self._open_folder(accelerator.is_main_process)
            source = self._source().to(accelerator.device)
        store = CheckpointStore(self.out / "checkpoints", self.warn)
        log = MetricLog(self.out / "metrics.jsonl", accelerator)
        resumed = store.latest() if self.resume else None
        if resumed:
            log.rewind(resumed.state.stage, resumed.state.step)
        hint = f"dmin train --resume --out {shlex.quote(str(self.out))}"
        loop = Loop(accelerator, store, log, show=self.show and accelerator.is_main_process, resume_hint=hint)
        if self.config.tune == "lora":
            add_lora(self.encoder.network, self.config.seed)
        classifier = self._stage1(loop, source, resumed if resumed and resumed.state.stage == 1 else None,
                                  skip=bool(resumed and resumed.state.stage == 2))  # fmt: skip
        model = self._stage2(loop, source, classifier, resumed if resumed and resumed.state.stage == 2 else None)
        if self.config.tune == "lora":
            merge_lora(self.encoder.network)
        self.encoder.refresh()
        if accelerator.is_main_process:
            save_model(self.out / "model", model)
        accelerator.wait_for_everyone()
        accelerator.end_training()
        return model

    def _stage1(self, loop: Loop, source: TextSource, resumed: Checkpoint | None, *, skip: bool) -> BaseClassifier:
        config, accelerator = self.config, loop.accelerator
        network = BaseClassifier(
            self._tuned(), len(self.task.base_classes), self.encoder.width, seed=config.seed, bf16=self._bf16()
        )
        if skip:  # stage 2's checkpoint holds all that stage 1 made
            return network.to(accelerator.device)
        stage = SupervisedStage(
            network, source, self.task.corpus, self.task.base_classes, config.stage1, seed=config.seed,
            processes=accelerator.num_processes, process=accelerator.process_index,
        )  # fmt: skip
        rates = self._settings(config.stage1.learning_rate, config.stage1.encoder_learning_rate)
        loop.run(stage, rates, resumed)
        return network

    def _stage2(
        self, loop: Loop, source: TextSource, classifier: BaseClassifier, resumed: Checkpoint | None
    ) -> TrainedModel:
        config, task = self.config, self.task
        rows = torch.tensor([row for label in task.base_classes for row in task.corpus.by_class[label]])
        memory = memory_from(classifier.weight, source.vectors(rows)) if not resumed else classifier.weight
        method = create(
            config.method, self.encoder.width, way=config.way, shot=config.shot, base_memory=memory, seed=config.seed,
            **config.options,
        )  # fmt: skip
        scale = getattr(method, "scale", None)
        if isinstance(scale, nn.Parameter) and not resumed:
            scale.data.copy_(classifier.scale.detach())
        network = EpisodeNetwork(self._tuned(), method, bf16=self._bf16()).to(loop.accelerator.device)
        stage = MetaStage(
            network,
            source,
            task.sampler,
            task.validation,
            base_rows(task.base_classes),
            config.stage2,
            loop.accelerator,
        )
        rate = config.stage2.learning_rate or method.learning_rate
        loop.run(stage, self._settings(rate, config.stage2.encoder_learning_rate), resumed)
        info = HeadInfo(
            config.method, config.options, config.way, config.shot, self.encoder.width, task.base_classes,
            self.encoder.pooling, self.encoder.max_length,
            trained_on={"data": task.corpus.name, "split": task.split_name, "tune": config.tune, "seed": config.seed},
        )  # fmt: skip
        return TrainedModel(self.encoder, method.eval(), info)

    def _source(self) -> TextSource:
        frozen = self.config.tune == "none"
        rows = self.task.rows("train", "valid")
        return TextSource(
            self.task.corpus, rows, self.encoder, frozen=frozen, cache=VectorCache() if frozen else None, show=self.show
        )

    def _tuned(self) -> Any:
        return self.encoder.network if self.config.tune != "none" else None

    def _bf16(self) -> bool:
        wanted = self.config.precision
        if self.config.tune == "none" or wanted == "float32":
            return False
        return wanted == "bf16" or pays_bf16(self.encoder.network.device)

    def _settings(self, rate: float, encoder_rate: float) -> LoopSettings:
        config = self.config
        return LoopSettings(rate, encoder_rate, config.weight_decay, config.warm_up, config.clip, config.seed)

    def _check_folder(self, overwrite: bool) -> None:
        stored = self.out / "config.yaml"
        if self.resume:
            if not stored.is_file():
                raise ConfigError(f"nothing to resume: {self.out} holds no run (no config.yaml)")
            changed = differences(load_config(stored), self.config)
            if changed:
                raise ConfigError(f"{self.out} holds a run of another configuration ({'; '.join(changed)}): "
                                  "give the same settings, or another --out")  # fmt: skip
        elif stored.exists() and not overwrite:
            raise ConfigError(f"{self.out} already holds a run: add --resume to go on, --overwrite to begin anew, "
                              "or choose another --out")  # fmt: skip
        elif self.out.exists() and not self.out.is_dir():
            raise ConfigError(f"{self.out} is a file, not a folder: choose another --out")

    def _open_folder(self, main: bool) -> None:
        if self.resume or not main:
            return
        for name in ("checkpoints", "model"):
            shutil.rmtree(self.out / name, ignore_errors=True)
        for name in ("metrics.jsonl", "summary.json"):
            (self.out / name).unlink(missing_ok=True)
        write_atomic(self.out / "config.yaml", self.config.to_yaml())


def make_accelerator(config: TrainConfig, out: Path) -> Any:
    """An `accelerate.Accelerator` for this machine; several processes where `torchrun` or `accelerate` started them."""
    from accelerate import Accelerator

    accelerator = Accelerator(
        cpu=config.device == "cpu" or not torch.cuda.is_available(),
        log_with="tensorboard" if config.tensorboard else None,
        project_dir=str(out) if config.tensorboard else None,
    )
    if config.tensorboard:
        accelerator.init_trackers("tensorboard")
    return accelerator


def _left_out(sampler: EpisodeSampler, what: str) -> str:
    names = ", ".join(sampler.left_out[:5]) + (" ..." if len(sampler.left_out) > 5 else "")
    return (
        f"{len(sampler.left_out)} {what} classes have fewer than {sampler.shot} + {sampler.queries} texts and are left "
        f"out of the episodes: {names}"
    )

"""`Trainer`: the whole road into one run folder, resumable at every point."""

from __future__ import annotations

import shlex
import shutil
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dmin.encoder import VectorCache
from dmin.errors import ConfigError
from dmin.files import write_atomic
from dmin.methods import FewShotMethod, method_class
from dmin.methods.base import Inputs
from dmin.model.folder import HeadInfo, TrainedModel, save_model
from dmin.training.calibrate import calibrate
from dmin.training.checkpoint import CheckpointStore
from dmin.training.config import TrainConfig, differences, load_config
from dmin.training.loop import Loop
from dmin.training.lora import add_lora, merge_lora
from dmin.training.metrics import MetricLog
from dmin.training.stage1 import hold_out
from dmin.training.stages import build_head, open_encoder, open_source, train_stage1, train_stage2, wants_bf16
from dmin.training.task import check_method, prepare_task


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
        if not method_class(config.method).traits.meta_trained:
            raise ConfigError(f"{config.method} has nothing to train: use it in dmin compare")
        self.encoder = open_encoder(config)
        check_method(config, self.task, self.encoder.width)
        wants_bf16(config, self.encoder)  # what this machine cannot do is said before anything is written

    def run(self) -> TrainedModel:
        """Train both stages, write `model/`, return the trained model."""
        config, task, encoder = self.config, self.task, self.encoder
        accelerator = make_accelerator(config, self.out)
        kind: Inputs = "tokens" if method_class(config.method).inputs == "tokens" else "vectors"
        with accelerator.main_process_first():  # so that the others find the folder and the cached vectors
            self._open_folder(accelerator.is_main_process)
            frozen = config.tune == "none"
            source = open_source(config, task, encoder, ("train", "valid"), frozen=frozen, show=self.show)
        loop = self._loop(accelerator)
        resumed = loop.store.latest() if self.resume and loop.store else None
        if resumed:
            loop.log.rewind(resumed.state.stage, resumed.state.step)
        if config.tune == "lora":
            add_lora(encoder.network, config.seed)
        in_stage2 = resumed is not None and resumed.state.stage == 2  # its checkpoint holds all that stage 1 made
        knowledge = None if in_stage2 else train_stage1(config, task, source, encoder, loop, resumed)
        method = build_head(config, task, encoder.width, knowledge)
        if kind == "tokens":
            source = open_source(config, task, encoder, ("train", "valid"), kind=kind, frozen=frozen, show=self.show)
        if config.tune != "none" and method.traits.freezes_encoder and loop.store:
            if in_stage2:
                loop.store.load_encoder(encoder.network)
            elif accelerator.is_main_process:
                loop.store.save_encoder(encoder.network)
            encoder.refresh()
        train_stage2(config, task, source, encoder, method, loop, resumed if in_stage2 else None)
        if config.tune == "lora":
            merge_lora(encoder.network)
        encoder.refresh()
        method.eval()
        model = TrainedModel(encoder, method, replace(self._info(), calibration=self._calibration(method)))
        if accelerator.is_main_process:
            save_model(self.out / "model", model)
        accelerator.wait_for_everyone()
        accelerator.end_training()
        return model

    def _loop(self, accelerator: Any) -> Loop:
        store = CheckpointStore(self.out / "checkpoints", self.warn)
        log = MetricLog(self.out / "metrics.jsonl", accelerator)
        hint = f"dmin train --resume --out {shlex.quote(str(self.out))}"
        if accelerator.num_processes > 1:
            hint += f" (started again by the same launcher, with {accelerator.num_processes} processes)"
        return Loop(accelerator, store, log, show=self.show and accelerator.is_main_process, resume_hint=hint)

    def _calibration(self, method: FewShotMethod) -> dict[str, Any] | None:
        """What the head's cosines mean, by the validation classes."""
        cache = VectorCache() if self.config.tune == "none" else None
        encoder = self.encoder

        def encode(texts: Sequence[str]) -> torch.Tensor:
            found = encoder.encode(texts) if cache is None else cache.encode(encoder, texts)
            return torch.from_numpy(found).to(encoder.network.device)

        task, config = self.task, self.config
        held = hold_out(task.corpus, task.base_classes, config.stage1.held_out, config.seed)[1]  # as stage 1 kept them
        found = calibrate(method, task.corpus, task.split, encode, config.seed, held[:: max(1, len(held) // 1000)])
        return found.as_dict() if found else None

    def _info(self) -> HeadInfo:
        config, encoder, task = self.config, self.encoder, self.task
        trained_on = {"data": task.corpus.name, "split": task.split_name, "tune": config.tune, "seed": config.seed}
        if config.exclude:
            trained_on["exclude"] = ["/".join(Path(file).parts[-3:]) for file in config.exclude]
        return HeadInfo(
            config.method, config.options, config.way, config.shot, encoder.width, task.base_classes, encoder.pooling,
            encoder.max_length, trained_on,
        )  # fmt: skip

    def _check_folder(self, overwrite: bool) -> None:
        stored = self.out / "config.yaml"
        if self.resume:
            if not stored.is_file():
                raise ConfigError(f"nothing to resume: {self.out} holds no run (no config.yaml)")
            changed = differences(load_config(stored), self.config)
            if changed:
                raise ConfigError(
                    f"{self.out} holds a run of another configuration ({'; '.join(changed)}): give the same settings, "
                    "or another --out"
                )
        elif stored.exists() and not overwrite:
            raise ConfigError(
                f"{self.out} already holds a run: add --resume to go on, --overwrite to begin anew, or choose another --out"
            )
        elif self.out.exists() and not self.out.is_dir():
            raise ConfigError(f"{self.out} is a file, not a folder: choose another --out")

    def _open_folder(self, main: bool) -> None:
        if self.resume or not main:
            return
        for name in ("checkpoints", "model", "episodes"):
            shutil.rmtree(self.out / name, ignore_errors=True)
        for name in ("metrics.jsonl", "summary.json"):
            (self.out / name).unlink(missing_ok=True)
        write_atomic(self.out / "config.yaml", self.config.to_yaml())


def make_accelerator(config: TrainConfig, out: Path | None = None) -> Any:
    """An `accelerate.Accelerator` for this machine; several processes where `torchrun` or `accelerate` started them."""
    from accelerate import Accelerator

    tracked = config.tensorboard and out is not None
    accelerator = Accelerator(
        cpu=config.device == "cpu" or not torch.cuda.is_available(),
        log_with="tensorboard" if tracked else None,
        project_dir=str(out) if tracked else None,
    )
    if tracked:
        accelerator.init_trackers("tensorboard")
    return accelerator

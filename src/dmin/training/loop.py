"""One short training loop for both stages: update, validate, keep the best, checkpoint, stop early, resume."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from dmin.errors import CheckpointError, ConfigError, TrainingInterruptedError
from dmin.progress import progress
from dmin.training.checkpoint import (
    Checkpoint,
    CheckpointStore,
    LoopState,
    learned_state,
    load_learned,
    load_optimizer,
    optimizer_tensors,
)
from dmin.training.config import TrainConfig
from dmin.training.metrics import MetricLog

LOG_EVERY = 10  # updates averaged into one line of metrics


class Stage(Protocol):
    """What a stage gives the loop."""

    number: int
    title: str
    unit: str
    per_step: int  # units (texts, episodes) in an update, over all processes
    steps: int  # updates, at most
    validate_every: int  # updates
    patience: int  # validations

    @property
    def network(self) -> nn.Module:
        """Everything that learns."""

    def loss(self, network: nn.Module, step: int) -> tuple[Tensor, Tensor]:
        """Return (loss, accuracy) of update `step`; `network` is `self.network` as accelerate prepared it."""

    def validate(self, network: nn.Module) -> float:
        """Return the validation accuracy, the same in every process."""


@dataclass(frozen=True)
class LoopSettings:
    """Learning rates, weight decay, warm-up, clipping and seed of a stage."""

    learning_rate: float
    encoder_learning_rate: float
    weight_decay: float
    warm_up: float
    clip: float
    seed: int
    scalar_learning_rate: float | None = None  # of the head's scalars; without one, like its other weights

    @classmethod
    def of(cls, config: TrainConfig, rate: float, encoder_rate: float) -> LoopSettings:
        """The settings of a configuration, with a stage's own rates."""
        return cls(rate, encoder_rate, config.weight_decay, config.warm_up, config.clip, config.seed)


class Loop:
    """Runs stages; holds what they share: accelerator, checkpoints, metrics, the wish to stop."""

    def __init__(
        self, accelerator: Any, store: CheckpointStore | None, log: MetricLog, *, show: bool, resume_hint: str
    ) -> None:
        self.accelerator, self.store, self.log = accelerator, store, log
        self.show, self.resume_hint = show, resume_hint

    def run(self, stage: Stage, settings: LoopSettings, resumed: Checkpoint | None = None) -> LoopState:
        """Train a stage to its end and leave its best weights in `stage.network`.

        Args:
            stage: what to train.
            settings: how.
            resumed: a checkpoint of this stage to go on from.
        """
        processes = self.accelerator.num_processes
        state = resumed.state if resumed else LoopState(stage=stage.number, processes=processes)
        if state.processes != processes:
            raise CheckpointError(f"the run was started with {state.processes} processes, not {processes}: use as many")
        if resumed:
            load_learned(stage.network, resumed.weights)
        best = resumed.best if resumed else {}
        if not state.finished:
            best = self._train(stage, settings, state, best, resumed)
        if best:
            load_learned(stage.network, best)
        return state

    def _train(
        self,
        stage: Stage,
        settings: LoopSettings,
        state: LoopState,
        best: dict[str, Tensor],
        resumed: Checkpoint | None,
    ) -> dict[str, Tensor]:
        optimizer = make_optimizer(stage.network, settings)
        if resumed:
            load_optimizer(optimizer, resumed.optimizer)
        network, prepared = self.accelerator.prepare(stage.network, optimizer)
        try:
            with stop_on_interrupt() as wish, torch.random.fork_rng():
                best = self._updates(stage, settings, state, best, network, prepared, wish)
        finally:
            self.accelerator.free_memory()
        return best

    def _updates(
        self,
        stage: Stage,
        settings: LoopSettings,
        state: LoopState,
        best: dict[str, Tensor],
        network: nn.Module,
        optimizer: Any,
        wish: threading.Event,
    ) -> dict[str, Tensor]:
        if state.step == 0 and state.best_step < 0:
            best = self._validate(stage, state, best, network)
            self._save(stage, state, optimizer)
        running = _Running(state.unlogged)
        with progress(stage.title, stage.steps * stage.per_step, unit=stage.unit, done=state.step * stage.per_step,
                      show=self.show) as advance:  # fmt: skip
            while state.step < stage.steps and state.stale < stage.patience:
                network.train()
                torch.manual_seed(update_seed(settings.seed, stage.number, state.step, self.accelerator.process_index))
                set_rates(optimizer, settings, state.step, stage.steps)
                loss, accuracy = stage.loss(network, state.step)
                if not torch.isfinite(loss):
                    raise ConfigError(
                        f"stage {stage.number}: the loss of update {state.step + 1} is NaN or infinite; lower the learning "
                        "rate (the last checkpoint is kept)"
                    )
                self.accelerator.backward(loss)
                self.accelerator.clip_grad_norm_(network.parameters(), settings.clip)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                state.step += 1
                running.add(loss, accuracy)
                advance(stage.per_step, **running.figures())
                if state.step % LOG_EVERY == 0 or state.step == stage.steps:
                    self.log.write(stage.number, state.step, **running.take())
                if state.step % stage.validate_every == 0 or state.step == stage.steps:
                    best = self._validate(stage, state, best, network)
                    self._save(stage, state, optimizer)
                if self._wants_stop(wish):
                    if self.store is None:
                        raise KeyboardInterrupt
                    self._save(stage, state, optimizer)
                    raise TrainingInterruptedError(
                        f"stopped in stage {stage.number} after update {state.step}; everything is saved. "
                        f"Go on with: {self.resume_hint}"
                    )
        state.finished = True
        self._save(stage, state, optimizer)
        return best

    def _validate(
        self, stage: Stage, state: LoopState, best: dict[str, Tensor], network: nn.Module
    ) -> dict[str, Tensor]:
        network.eval()
        with torch.no_grad():
            score = stage.validate(network)
        state.stale += 1
        if score > state.best_score:
            state.best_score, state.best_step, state.stale = score, state.step, 0
            best = {name: weight.clone() for name, weight in learned_state(stage.network).items()}
            if self.store and self.accelerator.is_main_process:
                self.store.save_best(stage.number, state.step, best)
        self.log.write(stage.number, state.step, validation=score)
        return best

    def _save(self, stage: Stage, state: LoopState, optimizer: Any) -> None:
        if self.store and self.accelerator.is_main_process:
            inner: Optimizer = getattr(optimizer, "optimizer", optimizer)
            self.store.save(state, learned_state(stage.network), optimizer_tensors(inner))
        self.accelerator.wait_for_everyone()

    def _wants_stop(self, wish: threading.Event) -> bool:
        if self.accelerator.num_processes == 1:
            return wish.is_set()
        flag = torch.tensor(float(wish.is_set()), device=self.accelerator.device)
        return bool(self.accelerator.reduce(flag, "sum") > 0)  # all stop at the same update


class _Running:
    """Loss and accuracy since they were last taken; checkpoints keep `values`, so that a resumed run has the same lines."""

    def __init__(self, values: list[list[float]]) -> None:
        self._values = values
        self._shown = (float("nan"), float("nan"))

    def add(self, loss: Tensor, accuracy: Tensor) -> None:
        self._values.append([float(loss.detach()), float(accuracy)])

    def figures(self) -> dict[str, str]:
        if self._values:
            losses, accuracies = zip(*self._values, strict=True)
            self._shown = (sum(losses) / len(losses), sum(accuracies) / len(accuracies))
        return {"loss": f"{self._shown[0]:.3f}", "accuracy": f"{100 * self._shown[1]:.1f} %"}

    def take(self) -> dict[str, float]:
        self.figures()
        self._values.clear()
        return {"loss": self._shown[0], "accuracy": self._shown[1], "time": time.time()}


def make_optimizer(network: nn.Module, settings: LoopSettings) -> AdamW:
    """AdamW with a rate for the encoder and one for the rest; decay on the encoder's matrices only.

    The rest is class vectors, scales and maps that start at the identity: pulling those to zero would hurt. Two things have
    optimizers of their own: the class vectors of `--all-classes` (`own_classes.py`) and the baseline that fine-tunes on
    each episode (`dmin.methods.finetune`).
    """
    groups: dict[str, list[tuple[str, nn.Parameter]]] = {"head": [], "scalars": [], "matrices": [], "vectors": []}
    for name, weight in network.named_parameters():
        if weight.requires_grad:
            if name.startswith("encoder."):
                kind = "matrices" if weight.ndim > 1 else "vectors"
            else:
                kind = "scalars" if weight.ndim == 0 and settings.scalar_learning_rate else "head"
            groups[kind].append((name, weight))
    rate = {"head": settings.learning_rate, "matrices": settings.encoder_learning_rate}
    rate["vectors"] = settings.encoder_learning_rate
    rate["scalars"] = settings.scalar_learning_rate or settings.learning_rate
    return AdamW(
        [
            {
                "params": named,
                "lr": rate[kind],
                "peak": rate[kind],
                "warm": kind in ("matrices", "vectors"),
                "weight_decay": settings.weight_decay if kind == "matrices" else 0.0,
            }
            for kind, named in groups.items()
            if named
        ],
        fused=True,
    )


def set_rates(optimizer: Any, settings: LoopSettings, step: int, steps: int) -> None:
    """Linear warm-up of the encoder's rate over the first part of the updates; the other rates stay."""
    rising = max(1, round(settings.warm_up * steps))
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * (min(1.0, (step + 1) / rising) if group["warm"] else 1.0)


def update_seed(seed: int, stage: int, step: int, process: int) -> int:
    """A seed for the dropout of one update in one process, so that no random state needs to be stored."""
    return int.from_bytes(torch.tensor([seed, stage, step, process]).numpy().tobytes(), "little") % (2**63 - 25)


@contextmanager
def stop_on_interrupt() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C (or termination) into a wish to stop after the update; the second one acts at once."""
    wish = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield wish
        return

    def handle(number: int, frame: FrameType | None) -> None:
        del number, frame
        if wish.is_set():
            raise KeyboardInterrupt
        wish.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

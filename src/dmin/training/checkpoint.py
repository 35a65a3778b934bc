"""Checkpoints: the state of a stage, written atomically, so that a killed run goes on to the same weights.

A checkpoint holds the weights that learn, the optimizer's state and the numbers of the loop. Random state is not
needed: every update draws from generators seeded by its own number. The best weights so far lie in a file of their own
that the checkpoint names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.optim import Optimizer

from dmin.errors import CheckpointError, DataError, ModelError
from dmin.files import check_document, check_finite, parse_json, read_tensors, tensor_digest, write_tensors

KEPT = 2  # the newest, and the one before it in case the newest is damaged
ENCODER = "encoder.safetensors"  # as stage 1 left it
_NAME = re.compile(r"stage(?P<stage>\d)-(?P<step>\d+)\.best-(?P<best>\d+)\.safetensors")


class LoopState(BaseModel):
    """Where a stage's loop stands."""

    model_config = ConfigDict(strict=True, extra="forbid")

    stage: int = Field(ge=1, le=2)
    step: int = Field(default=0, ge=0)  # updates done
    best_step: int = Field(default=-1, ge=-1)
    best_score: float = Field(default=-1.0, allow_inf_nan=False)
    stale: int = Field(default=0, ge=0)  # validations since the best one
    finished: bool = False
    processes: int = Field(default=1, ge=1)  # an update is shared by so many
    unlogged: list[list[float]] = []  # loss and accuracy of each update since the last line of metrics


@dataclass(frozen=True)
class Checkpoint:
    """What was read back."""

    path: Path
    state: LoopState
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    best: dict[str, Tensor]


class CheckpointStore:
    """The checkpoints of one run folder.

    Args:
        folder: where they lie.
        warn: called with each warning.
        run: identifies the run's settings; a checkpoint of other settings is refused.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None], run: str = "") -> None:
        self.folder, self.run = folder, run
        self._warn = warn

    def save_best(self, stage: int, step: int, weights: Mapping[str, Tensor]) -> None:
        """Store the best weights so far."""
        write_tensors(self._best_path(stage, step), weights)

    def save(self, state: LoopState, weights: Mapping[str, Tensor], optimizer: Mapping[str, Tensor]) -> None:
        """Store where the stage stands, then drop what is no longer needed."""
        tensors = {f"weights.{name}": tensor for name, tensor in weights.items()}
        tensors |= {f"optimizer.{name}": tensor for name, tensor in optimizer.items()}
        metadata = {"state": state.model_dump_json(), "run": self.run}
        if state.best_step >= 0:
            metadata["best"] = tensor_digest(self._best_path(state.stage, state.best_step)) or ""
        write_tensors(self.folder / _name(state), tensors, metadata)
        self._drop_old()

    def save_encoder(self, network: nn.Module) -> None:
        """Keep the encoder that stage 1 made, for a stage 2 in which it is frozen and in no checkpoint."""
        write_tensors(self.folder / ENCODER, network.state_dict())

    def load_encoder(self, network: nn.Module) -> None:
        """Put that encoder back."""
        weights, _ = read_tensors(self.folder / ENCODER)
        check_finite(weights, self.folder / ENCODER)
        try:
            network.load_state_dict(weights)
        except RuntimeError as error:
            raise CheckpointError(f"{self.folder / ENCODER} does not fit the encoder: start anew") from error

    def latest(self) -> Checkpoint | None:
        """Read the newest usable checkpoint; a damaged one is named and the one before it is taken."""
        paths = self._paths()
        for path in reversed(paths):
            try:
                return self._read(path)
            except (ModelError, CheckpointError) as error:
                self._warn(f"checkpoint {path.name} is refused: {error}")
        if paths:
            raise CheckpointError(f"no usable checkpoint in {self.folder}: all {len(paths)} are damaged; start anew")
        return None

    def _read(self, path: Path) -> Checkpoint:
        tensors, metadata = read_tensors(path)
        check_finite(tensors, path)
        try:
            state = check_document(parse_json(metadata.get("state", ""), f"{path}, its state"), LoopState, str(path))
        except DataError as error:
            raise CheckpointError(str(error)) from error
        if path.name != _name(state):
            raise CheckpointError(f"{path} holds the state of {_name(state)}")
        best: dict[str, Tensor] = {}
        if state.best_step >= 0:
            best, _ = read_tensors(self._best_path(state.stage, state.best_step))
            check_finite(best, self._best_path(state.stage, state.best_step))
        self._check_origin(path, state, metadata)
        return Checkpoint(path, state, _under("weights.", tensors), _under("optimizer.", tensors), best)

    def _check_origin(self, path: Path, state: LoopState, metadata: Mapping[str, str]) -> None:
        """Refuse a checkpoint of other settings, or beside the best weights of another one; version 0.1 noted neither."""
        if tensor_digest(path) is None:
            self._warn(f"checkpoint {path.name} was written by version 0.1: nothing shows if its state was changed")
            return
        if metadata.get("run") != self.run:
            raise CheckpointError(f"{path} belongs to a run of other settings")
        best = self._best_path(state.stage, state.best_step)
        if state.best_step >= 0 and metadata.get("best") != (tensor_digest(best) or ""):
            raise CheckpointError(f"{best.name} does not belong to {path.name}")

    def _drop_old(self) -> None:
        *old, previous, newest = [None] * KEPT + self._paths()
        needed = {_best_name(path) for path in (previous, newest) if path is not None}
        for path in old:
            if path is not None:
                path.unlink(missing_ok=True)
        for path in self.folder.glob("best*.safetensors"):
            if path.name not in needed:
                path.unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("stage*.safetensors") if _NAME.fullmatch(path.name))

    def _best_path(self, stage: int, step: int) -> Path:
        return self.folder / f"best{stage}-{max(step, 0):07d}.safetensors"


def _name(state: LoopState) -> str:
    """The name of a checkpoint."""
    return f"stage{state.stage}-{state.step:07d}.best-{max(state.best_step, 0):07d}.safetensors"


def _best_name(path: Path) -> str:
    """The name of the file of best weights that a checkpoint refers to."""
    found = _NAME.fullmatch(path.name)
    return f"best{found['stage']}-{found['best']}.safetensors" if found else ""


def learned_state(network: nn.Module) -> dict[str, Tensor]:
    """All that training makes, by name: of the encoder the weights that learn, of the rest everything."""
    frozen = {name for name, weight in network.named_parameters() if not weight.requires_grad}
    state = network.state_dict()
    return {name: value for name, value in state.items() if not name.startswith("encoder.") or name not in frozen}


def load_learned(network: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Put a learned state back in place; names and shapes must be the network's own."""
    own = learned_state(network)
    if set(own) != set(weights) or any(own[name].shape != weights[name].shape for name in own):
        raise CheckpointError("the checkpoint's weights are not those of this configuration")
    for name, weight in own.items():
        weight.copy_(weights[name])


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    """The optimizer's state (moments, steps) as tensors named after its weights."""
    return {
        f"{name}/{key}": value
        for name, weight in _named_weights(optimizer)
        for key, value in optimizer.state.get(weight, {}).items()
    }


def load_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put the state back that `optimizer_tensors` gave."""
    weights = dict(_named_weights(optimizer))
    for key, value in tensors.items():
        name, _, entry = key.rpartition("/")
        if name not in weights or (entry != "step" and value.shape != weights[name].shape):
            raise CheckpointError("the checkpoint's optimizer is not that of this configuration")
        weight = weights[name]
        optimizer.state[weight][entry] = value.clone() if entry == "step" else value.to(weight.device, copy=True)


def _named_weights(optimizer: Optimizer) -> list[tuple[str, Tensor]]:
    return [
        pair for group in optimizer.param_groups for pair in zip(group["param_names"], group["params"], strict=True)
    ]


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}

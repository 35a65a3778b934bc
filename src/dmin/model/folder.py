"""A trained model as a folder: the encoder in the Hugging Face format, the head beside it, no pickle."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from dmin.encoder import Encoder
from dmin.errors import DataError, ModelError, StorageError
from dmin.files import new_folder, read_json, read_tensors, write_json, write_tensors
from dmin.hub import fetch_folder, is_hub_id
from dmin.methods import FewShotMethod, create

FORMAT = 1


@dataclass(frozen=True)
class HeadInfo:
    """What `head.json` says about a head."""

    method: str
    options: dict[str, Any]
    way: int
    shot: int
    dim: int
    base_classes: tuple[str, ...]
    pooling: str
    max_length: int
    trained_on: dict[str, Any] = field(default_factory=dict)
    calibration: dict[str, Any] | None = None


@dataclass(frozen=True)
class TrainedModel:
    """A head with the encoder that it was trained with."""

    encoder: Encoder
    method: FewShotMethod
    info: HeadInfo


def save_model(folder: Path, model: TrainedModel) -> None:
    """Write the model; the folder appears whole or not at all."""
    with new_folder(folder) as part:
        try:
            model.encoder.save(str(part))
        except SafetensorError as error:  # (its way to report a full disk)
            raise StorageError(f"cannot write the model to {folder}: {error}") from error
        for path in part.iterdir():
            path.chmod(0o644)  # safetensors writes for the owner alone
        save_head(part, model)


def save_head(folder: Path, model: TrainedModel, *, half: bool = False) -> None:
    """Write `head.safetensors` and `head.json`; with `half`, matrices in half precision, which is half the size."""
    tensors = model.method.state_dict()
    if half:
        tensors = {name: tensor.half() if tensor.ndim > 1 else tensor for name, tensor in tensors.items()}
    write_tensors(folder / "head.safetensors", tensors)
    info = model.info
    write_json(
        folder / "head.json",
        {
            "format": FORMAT,
            "method": info.method,
            "options": info.options,
            "way": info.way,
            "shot": info.shot,
            "dim": info.dim,
            "encoder_fingerprint": model.encoder.fingerprint,
            "pooling": info.pooling,
            "max_length": info.max_length,
            "base_classes": list(info.base_classes),
            "trained_on": info.trained_on,
            "calibration": info.calibration,
        },
    )


def shipped_head() -> Path:
    """The folder of the head that comes with the package, for the embedded encoder."""
    return Path(str(resources.files("dmin.model") / "shipped"))


def model_folder(model: str | Path) -> Path:
    """The folder of a trained model: of a run, of its `model/`, or fetched from the Hugging Face hub by id."""
    folder = Path(model).expanduser()
    if not folder.is_dir():
        if not is_hub_id(model):
            raise ModelError(f"no such run or model folder: {folder}")
        folder = fetch_folder(str(model))
    return folder / "model" if (folder / "model").is_dir() else folder


def answers_own_classes(model: str | Path) -> bool:
    """True where a folder or hub id holds a model that was trained with all_classes: it needs no examples."""
    if not Path(model).expanduser().is_dir() and not is_hub_id(model):
        return False
    path = model_folder(model) / "head.json"
    if not path.is_file():
        return False
    try:
        return bool(read_json(path).get("trained_on", {}).get("all_classes"))
    except (DataError, AttributeError):
        return False  # loading it says what is wrong


def load_model(model: str | Path, *, device: str | None = None, backend: str = "torch") -> TrainedModel:
    """Load a run folder (or its `model/`) or a hub id, checking that the head was trained with the encoder.

    A folder that holds a head alone is for the embedded encoder.
    """
    folder = model_folder(model)
    if not (folder / "head.json").is_file():
        raise ModelError(
            f"{folder} holds no trained head (head.json): is the training finished? see dmin train --resume"
        )
    try:
        stored = read_json(folder / "head.json")
    except DataError as error:
        raise ModelError(str(error)) from error
    if stored.get("format") != FORMAT:
        raise ModelError(f"{folder}: head format {stored.get('format')!r}; this version reads format {FORMAT}")
    source = str(folder) if (folder / "config.json").is_file() else "default"
    encoder = Encoder(
        source, pooling=stored["pooling"], max_length=stored["max_length"], device=device, backend=backend
    )
    if encoder.fingerprint != stored["encoder_fingerprint"]:
        raise ModelError(f"{folder}: the head was trained with another encoder than the one beside it")
    info = HeadInfo(
        method=stored["method"],
        options=stored["options"],
        way=stored["way"],
        shot=stored["shot"],
        dim=stored["dim"],
        base_classes=tuple(stored["base_classes"]),
        pooling=stored["pooling"],
        max_length=stored["max_length"],
        trained_on=stored["trained_on"],
        calibration=stored["calibration"],
    )
    method = build_method(info)
    tensors, _ = read_tensors(folder / "head.safetensors")
    try:
        method.load_state_dict(tensors)
    except RuntimeError as error:
        raise ModelError(
            f"{folder}: head.safetensors does not fit head.json (was it trained by another version? then train it anew): "
            f"{error}"
        ) from error
    return TrainedModel(encoder, method.to(encoder.network.device).eval(), info)


def build_method(info: HeadInfo) -> FewShotMethod:
    """Make an untrained method of the described shape."""
    memory = torch.ones(max(1, len(info.base_classes)), info.dim)
    return create(info.method, info.dim, way=info.way, shot=info.shot, base_memory=memory, **info.options)

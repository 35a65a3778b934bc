"""A trained model as a folder: the encoder in the Hugging Face format, the head beside it, no pickle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError

from dmin.encoder import TextEncoder, open_encoder
from dmin.encoder.opening import encoder_beside
from dmin.errors import DminError, ModelError, StorageError, one_line
from dmin.files import (
    check_finite,
    new_folder,
    read_tensors,
    reading_folder,
    write_atomic,
    write_json,
    write_manifest,
    write_tensors,
)
from dmin.methods import FewShotMethod, create, method_class
from dmin.methods.base import early_options
from dmin.model.head_file import FORMAT, HEAD, KIND, WEIGHTS, HeadDocument, HeadInfo, read_head
from dmin.model.places import OWN_FILES, answers_own_classes, copy_model, model_folder, own_files, shipped_head

__all__ = [
    "TrainedModel",
    "answers_own_classes",
    "build_method",
    "copy_model",
    "load_model",
    "model_folder",
    "own_files",
    "save_head",
    "save_model",
    "shipped_head",
]


@dataclass(frozen=True)
class TrainedModel:
    """A head with the encoder that it was trained with."""

    encoder: TextEncoder
    method: FewShotMethod
    info: HeadInfo


def save_model(folder: Path, model: TrainedModel) -> None:
    """Write the model; the folder appears whole or not at all."""
    with new_folder(folder, OWN_FILES) as part:
        try:
            model.encoder.save(str(part))
        except SafetensorError as error:  # (its way to report a full disk)
            raise StorageError(f"cannot write the model to {folder}: {error}") from error
        for path in part.iterdir():
            path.chmod(0o644)  # safetensors writes for the owner alone
        _write_head(part, model, half=False)
        write_manifest(part, KIND)


def save_head(folder: Path, model: TrainedModel, card: str = "") -> None:
    """Write a head alone, with matrices in half precision, and its card; the folder appears whole or not at all."""
    with new_folder(folder, OWN_FILES) as part:
        _write_head(part, model, half=True)
        if card:
            write_atomic(part / "README.md", card)
        write_manifest(part, KIND)


def _write_head(folder: Path, model: TrainedModel, *, half: bool) -> None:
    tensors = model.method.state_dict()
    if half:
        tensors = {name: tensor.half() if tensor.ndim > 1 else tensor for name, tensor in tensors.items()}
    write_tensors(folder / WEIGHTS, tensors)
    info = model.info
    write_json(
        folder / HEAD,
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


def load_model(model: str | Path, *, device: str | None = None, backend: str = "auto") -> TrainedModel:
    """Load a run folder (or its `model/`) or a hub id, checking every file and that the head was trained with the encoder.

    A folder that holds a head alone is for the embedded encoder.
    """
    with reading_folder(model_folder(model)) as folder:
        if not (folder / HEAD).is_file():
            raise ModelError(
                f"{folder} holds no trained head ({HEAD}): is the training finished? see dmin train --resume"
            )
        stored = read_head(folder)
        encoder = open_encoder(
            encoder_beside(folder), pooling=stored.pooling, max_length=stored.max_length, device=device, backend=backend
        )
        if encoder.fingerprint != stored.encoder_fingerprint:
            raise ModelError(f"{folder}: the head was trained with another encoder than the one beside it")
        if stored.dim != encoder.width:
            raise ModelError(f"{folder / HEAD}: 'dim' is {stored.dim}, but the encoder's vectors have {encoder.width}")
        method = _read_method(folder, stored)
    return TrainedModel(encoder, method.to(encoder.device).eval(), stored.info())


def _read_method(folder: Path, stored: HeadDocument) -> FewShotMethod:
    """The method with its weights."""
    tensors, _ = read_tensors(folder / WEIGHTS)
    check_finite(tensors, folder / WEIGHTS)
    try:
        method = build_method(stored.info())
        method.load_state_dict(tensors)
    except DminError as error:
        raise ModelError(f"{folder / HEAD}: {error}") from error
    except (RuntimeError, TypeError, ValueError, ArithmeticError, AttributeError, IndexError) as error:
        raise ModelError(
            f"{folder}: {WEIGHTS} does not fit {HEAD} (was it trained by another version? then train it anew): "
            f"{one_line(error)}"
        ) from error
    return method


def build_method(info: HeadInfo) -> FewShotMethod:
    """Make an untrained method of the described shape."""
    memory = torch.ones(max(1, len(info.base_classes)), info.dim)
    options = early_options(method_class(info.method), info.options)
    return create(info.method, info.dim, way=info.way, shot=info.shot, base_memory=memory, **options)

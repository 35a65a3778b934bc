"""A trained model as a folder: the encoder in the Hugging Face format, the head beside it, no pickle."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import resources
from pathlib import Path

import torch
from safetensors import SafetensorError

from dmin.encoder import TextEncoder, open_encoder
from dmin.encoder.onnx import EXPORTS
from dmin.encoder.opening import encoder_beside
from dmin.errors import DataError, DminError, ModelError, StorageError, one_line
from dmin.files import (
    MANIFEST,
    check_finite,
    listed_files,
    new_folder,
    read_json,
    read_tensors,
    reading_folder,
    user_path,
    write_atomic,
    write_json,
    write_manifest,
    write_tensors,
)
from dmin.hub import fetch_folder, is_hub_id
from dmin.methods import FewShotMethod, create
from dmin.model.head_file import ENCODER_FILES, FORMAT, HEAD, KIND, WEIGHTS, HeadDocument, HeadInfo, read_head

OWN_FILES = (HEAD, WEIGHTS, "README.md", *ENCODER_FILES, *EXPORTS)  # of a model folder, where no manifest lists them


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


def copy_model(source: Path, target: Path) -> None:
    """Copy a model's own files into a new folder that carries a manifest; what others put beside them stays behind."""
    listed = listed_files(source)
    if listed is None:  # saved by version 0.1
        listed = [path.name for path in source.iterdir() if _is_listed(path)]
    target.mkdir()
    for name in dict.fromkeys([*listed, "README.md", *EXPORTS]):
        if Path(name).name != name:
            raise ModelError(f"{source}: its manifest names {name!r}, which is not a file of a model folder")
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    write_manifest(target, KIND)


def own_files(folder: Path) -> list[Path]:
    """The files of a model folder that this package wrote, its card and exports too."""
    names = (*(listed_files(folder) or OWN_FILES), "README.md", *EXPORTS, MANIFEST)
    files = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    return [path for path in files if any(fnmatch(path.name, name) for name in names)]


def _is_listed(path: Path) -> bool:
    return path.is_file() and any(fnmatch(path.name, pattern) for pattern in (HEAD, WEIGHTS, *ENCODER_FILES))


def shipped_head() -> Path:
    """The folder of the head that comes with the package, for the embedded encoder."""
    return Path(str(resources.files("dmin.model") / "shipped"))


def model_folder(model: str | Path) -> Path:
    """The folder of a trained model: of a run, of its `model/`, or fetched from the Hugging Face hub by id."""
    folder = user_path(model)
    if not folder.is_dir():
        if not is_hub_id(model):
            raise ModelError(f"no such run or model folder: {folder}")
        folder = fetch_folder(str(model))
    return folder / "model" if (folder / "model").is_dir() else folder


def answers_own_classes(model: str | Path) -> bool:
    """True where a folder or hub id holds a model that was trained with all_classes: it needs no examples."""
    if not user_path(model).is_dir() and not is_hub_id(model):
        return False
    path = model_folder(model) / HEAD
    if not path.is_file():
        return False
    try:
        return bool(read_json(path).get("trained_on", {}).get("all_classes"))
    except (DataError, AttributeError):
        return False  # loading it says what is wrong


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
    return create(info.method, info.dim, way=info.way, shot=info.shot, base_memory=memory, **info.options)

"""A fitted classifier as a folder: JSON, safetensors, a card and, where it has one, its trained model; no pickle.

`manifest.json` binds the files to each other. Loading reads this folder and the package only: an encoder that the folder
names, but does not hold, must be given again.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, Strict

from dmin.classifier.card import classifier_card
from dmin.classifier.fitted_files import (
    fitted_tensors,
    fitted_values,
    opened_as,
    read_fitted,
    read_rows,
    saved_encoder,
    saved_name,
)
from dmin.classifier.inputs import PRECOMPUTED
from dmin.classifier.knowledge import ClassSupport
from dmin.classifier.state import Settings, State, made_by, restore
from dmin.encoder.carriers import NAMES
from dmin.errors import ConfigError, DataError, ModelError, StorageError, one_line
from dmin.files import (
    MANIFEST,
    check_document,
    check_finite,
    check_manifest,
    check_replaceable,
    new_folder,
    read_json,
    read_tensors,
    reading_folder,
    user_path,
    whole_folder,
    write_atomic,
    write_json,
    write_manifest,
    write_tensors,
)
from dmin.hub import fetch_folder, is_hub_id, send_folder
from dmin.model.folder import copy_model, model_folder
from dmin.model.head_file import HEAD, WEIGHTS, read_head

FORMAT = 3  # 2 is that of version 0.1, without a manifest
KIND = "classifier"
DESCRIPTION = "classifier.json"
VECTORS = "support.safetensors"
OWN_FILES = (DESCRIPTION, VECTORS, "model/*")  # of a saved classifier, where no manifest lists them
_KEPT = ("use_names", "keep_base", "unknown_label", "backend")
# Models that come with the package: their name is enough. In a file "default" is the head of then, which is "dmin-plus".
_BY_NAME = ("default", "adaptive", "nearest", "dmin-plus")

Number = Annotated[float, Field(allow_inf_nan=False)]
Label = str | bool | int | Number
# JSON has lists where Python has tuples.
Threshold = Annotated[tuple[Label, Number], Strict(False)]
Description = Annotated[tuple[Label, str], Strict(False)]
StoredClass = Annotated[tuple[Label, list[str], bool], Strict(False)]  # label, rows, is the last row its name?


class _Document(BaseModel):
    model_config = ConfigDict(strict=True)


class RejectByLabel(_Document):
    """Thresholds by label."""

    by_label: list[Threshold]


class SettingsDocument(_Document):
    """The settings that are stored as they are."""

    use_names: bool | Literal["auto"]
    keep_base: bool
    unknown_label: Label | None
    backend: str


class ClassifierDocument(_Document):
    """The fields of `classifier.json`; those that a later version may add are ignored."""

    format: int
    model: Literal["default", "adaptive", "nearest", "dmin-plus"] | None  # None: the folder `model` beside it
    settings: SettingsDocument
    reject: Literal["auto"] | Number | RejectByLabel | None
    outside: list[str] | list[list[Number]] | None
    names_on: bool | None
    name_weight: Number
    descriptions: list[Description]
    encoder_name: str | None
    own_encoder: bool
    encoder: str | None
    head: str | None
    fitted: dict[str, Any] | None = None  # values of a fitted adaptive head; its arrays are beside the vectors
    classes: list[StoredClass]


def save_state(state: State, folder: Path) -> None:
    """Write classes, examples, vectors and settings; the folder appears whole or not at all."""
    for label in state.knowledge.labels:
        if not isinstance(label, str | int | float):
            raise DataError(f"label {label!r} is a {type(label).__name__}: only strings and numbers can be saved")
    description = _description(state)
    check_document(description, ClassifierDocument, "the classifier")  # what could not be read again is not written
    check_replaceable(folder, DESCRIPTION)
    with new_folder(folder, OWN_FILES) as part:
        if str(state.settings.model) not in _BY_NAME:
            _copy_model(state, part / "model")
        entries = list(enumerate(state.knowledge.classes))
        tensors = {f"vectors.{number}": entry.vectors for number, entry in entries}
        if state.model.head is None:
            tensors |= {f"prepared.{number}": entry.prepared for number, entry in entries}
        write_tensors(part / VECTORS, tensors | fitted_tensors(state))
        write_json(part / DESCRIPTION, description)
        write_atomic(part / "README.md", classifier_card(state))
        write_manifest(part, KIND)


def _copy_model(state: State, target: Path) -> None:
    """Copy the trained model; one that was trained anew meanwhile is not the one that made the vectors.

    No lock is taken on it: it may lie beside the folder that is being written, whose lock this process holds already.
    """
    source = model_folder(state.settings.model)
    copy_model(source, target)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # (of version 0.1: said when it was loaded)
            stored = read_head(target)
        tensors, _ = read_tensors(target / WEIGHTS)
    except ModelError as error:
        raise StorageError(f"cannot save the model {source}: {error}") from error
    own, encoder = state.model.method.state_dict(), state.model.encoder
    same = encoder is not None and stored.encoder_fingerprint == encoder.fingerprint and set(own) == set(tensors)
    if not same or any(not torch.equal(own[name].cpu(), tensors[name].to(own[name].dtype)) for name in own):
        raise StorageError(f"{source / HEAD} was replaced since this classifier was fitted: fit it again, then save it")


def _description(state: State) -> dict[str, Any]:
    settings = state.settings
    reject: Any = settings.reject
    if isinstance(reject, Mapping):
        reject = {"by_label": [[label, float(value)] for label, value in reject.items()]}
    encoder = settings.encoder
    return {
        "format": FORMAT,
        "model": saved_name(state) if str(settings.model) in _BY_NAME else None,
        "settings": {name: _plain(getattr(settings, name)) for name in _KEPT},
        "reject": _plain(reject),
        "outside": np.asarray(settings.outside).tolist() if settings.outside is not None else None,
        "names_on": state.names_on,
        "name_weight": state.knowledge.name_weight,
        "descriptions": [[label, text] for label, text in (settings.descriptions or {}).items()],
        "encoder_name": saved_encoder(state),
        "own_encoder": encoder is not None and not isinstance(encoder, str),
        **made_by(state.model),
        "fitted": fitted_values(state),
        "classes": [[entry.label, list(entry.texts), entry.named] for entry in state.knowledge.classes],
    }


def load_state(path: str | Path, encoder: Any, device: str | None) -> State:
    """Read what `save_state` wrote, from a folder or a hub id.

    Args:
        path: the folder, or a hub id.
        encoder: the encoder of a classifier that does not hold its own; names are not followed without it.
        device: where to compute.
    """
    folder = user_path(path)
    if not whole_folder(folder).exists() and is_hub_id(path):
        folder = fetch_folder(str(path), DESCRIPTION)
    with reading_folder(folder) as found:
        stored = _read_description(found)
        model, named = opened_as(stored.model, stored.encoder_name, stored.own_encoder)
        settings = Settings(
            model=model or found / "model",
            encoder=_chosen_encoder(stored, named, encoder, folder),
            descriptions=dict(stored.descriptions) or None,
            reject=dict(stored.reject.by_label) if isinstance(stored.reject, RejectByLabel) else stored.reject,
            outside=cast(Any, stored.outside),  # vectors where the encoder is "precomputed"
            device=device,
            **stored.settings.model_dump(),
        )
        classes, fitted = _read_classes(found, stored)
        digests = {"encoder": stored.encoder, "head": stored.head}
        try:
            state = restore(settings, classes, stored.name_weight, stored.names_on, digests, fitted)
        except ModelError as error:
            raise ModelError(f"{folder}: {error}") from error
    # A copy that a crash left is put back under the folder's name by the next save.
    return state if found == folder else replace(state, settings=replace(settings, model=model or folder / "model"))


def _chosen_encoder(stored: ClassifierDocument, named: str | None, given: Any, folder: Path) -> Any:
    """The encoder to load with; one that the folder names and the package does not carry is opened only if given too."""
    if named == PRECOMPUTED and given in (None, PRECOMPUTED):
        return PRECOMPUTED
    if stored.own_encoder and given is None:
        raise ConfigError(f"{folder}: give the same encoder to load")
    if named is not None and given is None:
        if set(named.split("+")) <= set(NAMES):
            return named
        raise ConfigError(
            f"{folder} was made with the encoder {named!r}, which it does not hold: give encoder={named!r} to load, if you "
            "trust it"
        )
    if given is not None and not stored.own_encoder and named is None:
        raise ConfigError(f"{folder}: it brings its own: leave out encoder")
    return given


def _read_description(folder: Path) -> ClassifierDocument:
    """The content of `classifier.json`, whole, checked, and bound to the files beside it."""
    try:
        stored = read_json(folder / DESCRIPTION)
    except DataError as error:
        raise ModelError(f"{folder} holds no saved classifier: {error}") from error
    version = stored.get("format") if isinstance(stored, dict) else None
    if version not in (2, FORMAT):
        raise ModelError(f"{folder}: classifier format {version!r}; this version reads formats 2 and {FORMAT}")
    if version == FORMAT or (folder / MANIFEST).exists():
        check_manifest(folder, KIND, (DESCRIPTION, VECTORS), ("model/*",))
    else:
        warnings.warn(
            f"{folder} was saved by version 0.1, without digests of its files: save it again to protect it",
            stacklevel=5,
        )
    try:
        return check_document(stored, ClassifierDocument, str(folder / DESCRIPTION))
    except DataError as error:
        raise ModelError(str(error)) from error


def _read_classes(folder: Path, stored: ClassifierDocument) -> tuple[list[ClassSupport], Any]:
    """Classes with their vectors, and the fitted head if there is one; a `ModelError` where the files do not fit."""
    tensors, _ = read_tensors(folder / VECTORS)
    check_finite(tensors, folder / VECTORS)
    labels = [label for label, _, _ in stored.classes]
    if len(set(labels)) < len(labels):
        raise ModelError(f"{folder / DESCRIPTION}: a class is there twice")
    widths = set()
    classes = []
    for number, (label, texts, named) in enumerate(stored.classes):
        vectors, prepared = read_rows(tensors, number)
        shapes = (vectors.ndim, prepared.ndim, len(vectors), len(prepared))
        if shapes != (2, 2, len(texts), len(texts)) or not texts:
            raise ModelError(f"{folder}: {VECTORS} does not fit {DESCRIPTION} (class {label!r})")
        widths.add((vectors.shape[1], prepared.shape[1]))
        classes.append(ClassSupport(label, tuple(texts), named, vectors, prepared))
    if len(widths) > 1:
        raise ModelError(f"{folder / VECTORS}: its vectors have several widths")
    try:
        return classes, read_fitted(tensors, stored.fitted)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder / DESCRIPTION}: the fitted head is damaged: {one_line(error)}") from error


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python, for JSON."""
    return value.item() if isinstance(value, np.generic) else value


def push_state(state: State, identifier: str, *, private: bool = False) -> str:
    """Save into a folder of its own and send that to the hub."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "classifier"
        save_state(state, folder)
        return send_folder(folder, identifier, private=private)

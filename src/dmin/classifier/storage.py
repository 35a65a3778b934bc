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
from pydantic import BaseModel, ConfigDict, Field, Strict

from dmin.classifier.arrays import as_numpy
from dmin.classifier.card import classifier_card
from dmin.classifier.cascade import CASCADE
from dmin.classifier.fitted_files import (
    first_arrays,
    first_values,
    fitted_arrays,
    fitted_values,
    opened_as,
    read_first,
    read_fitted,
    read_rows,
    saved_encoder,
    saved_name,
)
from dmin.classifier.inputs import PRECOMPUTED
from dmin.classifier.knowledge import ClassSupport
from dmin.classifier.scoring import SHIPPED
from dmin.classifier.settings import Settings
from dmin.classifier.state import State, made_by, restore
from dmin.encoder import TextEncoder
from dmin.encoder.carriers import NAMES
from dmin.encoder.portable import save_portable
from dmin.errors import ConfigError, DataError, ModelError, one_line
from dmin.files import (
    MANIFEST,
    check_document,
    check_finite,
    check_manifest,
    check_replaceable,
    new_folder,
    read_arrays,
    read_json,
    reading_folder,
    user_path,
    whole_folder,
    write_arrays,
    write_atomic,
    write_json,
    write_manifest,
)
from dmin.hub import fetch_folder, is_hub_id, send_folder

FORMAT = 3  # 2 is that of version 0.1, without a manifest
KIND = "classifier"
DESCRIPTION = "classifier.json"
VECTORS = "support.safetensors"
ENCODER = "encoder"  # the folder of an encoder that the classifier carries
OWN_FILES = (DESCRIPTION, VECTORS, "model/*")  # of a saved classifier, where no manifest lists them
_KEPT = ("use_names", "keep_base", "unknown_label", "backend", "search")
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
    search: Literal["exact", "index"] = "exact"


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
    first: dict[str, Any] | None = None  # values of the first stage of a cascade, likewise
    classes: list[StoredClass]
    carries_encoder: bool = False  # in the folder `encoder` beside it


def save_state(state: State, folder: Path, *, with_encoder: bool = False) -> None:
    """Write classes, examples, vectors and settings, and the encoder if asked; the folder appears whole or not at all."""
    for label in state.knowledge.labels:
        if not isinstance(label, str | int | float):
            raise DataError(f"label {label!r} is a {type(label).__name__}: only strings and numbers can be saved")
    carried = _carried_encoder(state) if with_encoder else None
    description = _description(state) | ({"carries_encoder": True} if carried is not None else {})
    check_document(description, ClassifierDocument, "the classifier")  # what could not be read again is not written
    check_replaceable(folder, DESCRIPTION)
    with new_folder(folder, OWN_FILES) as part:
        if str(state.settings.model) not in _BY_NAME:
            from dmin.classifier.trained import copy_trained

            encoder = state.model.encoder
            fingerprint = encoder.fingerprint if encoder else None
            copy_trained(state.settings.model, state.model.scorer, fingerprint, part / "model")
        if carried is not None:
            save_portable(carried, part / ENCODER)
        entries = list(enumerate(state.knowledge.classes))
        arrays = {f"vectors.{number}": as_numpy(entry.vectors) for number, entry in entries}
        if state.model.head is None:
            arrays |= {f"prepared.{number}": as_numpy(entry.prepared) for number, entry in entries}
        write_arrays(part / VECTORS, arrays | fitted_arrays(state) | first_arrays(state))
        write_json(part / DESCRIPTION, description)
        write_atomic(part / "README.md", classifier_card(state))
        write_manifest(part, KIND)


def _carried_encoder(state: State) -> TextEncoder | None:
    """The encoder to write beside the classes; None where the copied model brings its own."""
    if str(state.settings.model) not in _BY_NAME:
        return None
    if state.settings.cascade:
        raise ConfigError("with_encoder: a cascade has two encoders, which must be installed; leave it out")
    if state.model.encoder is None:
        raise ConfigError("with_encoder: the vectors come from elsewhere, there is no encoder to save; leave it out")
    if saved_name(state) == SHIPPED:
        raise ConfigError(f"with_encoder: model={SHIPPED!r} always uses the encoder that is installed; leave it out")
    return state.model.encoder


def _description(state: State) -> dict[str, Any]:
    settings = state.settings
    reject: Any = settings.reject
    if isinstance(reject, Mapping):
        reject = {"by_label": [[label, float(value)] for label, value in reject.items()]}
    encoder = settings.encoder
    return {
        "format": FORMAT,
        "model": saved_name(state) if str(settings.model) in _BY_NAME else None,
        "settings": {name: _plain(value) for name in _KEPT if (value := getattr(settings, name)) != "exact"},
        "reject": _plain(reject),
        "outside": np.asarray(settings.outside).tolist() if settings.outside is not None else None,
        "names_on": state.names_on,
        "name_weight": state.knowledge.name_weight,
        "descriptions": [[label, text] for label, text in (settings.descriptions or {}).items()],
        "encoder_name": saved_encoder(state),
        "own_encoder": encoder is not None and not isinstance(encoder, str),
        **made_by(state.model),
        "fitted": fitted_values(state),
        **({} if (first := first_values(state)) is None else {"first": first}),
        "classes": [[entry.label, list(entry.texts), entry.named] for entry in state.knowledge.classes],
    }


def load_state(path: str | Path, encoder: Any, device: str | None, backend: str | None = None) -> State:
    """Read what `save_state` wrote, from a folder or a hub id.

    Args:
        path: the folder, or a hub id.
        encoder: the encoder of a classifier that does not hold its own; names are not followed without it.
        device: where to compute.
        backend: what computes; None: as it was saved.
    """
    folder = user_path(path)
    if not whole_folder(folder).exists() and is_hub_id(path):
        folder = fetch_folder(str(path), DESCRIPTION)
    with reading_folder(folder) as found:
        stored = _read_description(found)
        model, named = opened_as(stored.model, stored.encoder_name, stored.own_encoder)
        settings = Settings(
            model=model or found / "model",
            encoder=_chosen_encoder(stored, named, encoder, folder, found),
            descriptions=dict(stored.descriptions) or None,
            reject=dict(stored.reject.by_label) if isinstance(stored.reject, RejectByLabel) else stored.reject,
            outside=cast(Any, stored.outside),  # vectors where the encoder is "precomputed"
            device=device,
            **stored.settings.model_dump() | ({} if backend is None else {"backend": backend}),
        )
        classes, fitted, first = _read_classes(found, stored)
        digests = {"encoder": stored.encoder, "head": stored.head}
        try:
            state = restore(settings, classes, stored.name_weight, stored.names_on, digests, fitted, first)
        except ModelError as error:
            raise ModelError(f"{folder}: {error}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{folder / DESCRIPTION}: a fitted stage is damaged: {one_line(error)}") from error
    # A copy that a crash left is put back under the folder's name by the next save.
    if found == folder:
        return state
    kept = replace(settings, model=model or folder / "model")
    if settings.encoder == str(found / ENCODER):
        kept = replace(kept, encoder=str(folder / ENCODER))
    return replace(state, settings=kept)


def _chosen_encoder(stored: ClassifierDocument, named: str | None, given: Any, folder: Path, found: Path) -> Any:
    """The encoder to load with; one that the folder names and the package does not carry is opened only if given too.

    Args:
        stored: what the folder says.
        named: the encoder that it names.
        given: what the user gave.
        folder: as the user knows it.
        found: where its files are.
    """
    if stored.carries_encoder and given is None:
        return str(found / ENCODER)
    if named == PRECOMPUTED and given in (None, PRECOMPUTED):
        return PRECOMPUTED
    if stored.own_encoder and given is None:
        raise ConfigError(f"{folder}: give the same encoder to load")
    if named is not None and given is None:
        if named == CASCADE or set(named.split("+")) <= set(NAMES):
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
        check_manifest(folder, KIND, (DESCRIPTION, VECTORS), ("model/*", "encoder/*"))
    else:
        warnings.warn(
            f"{folder} was saved by version 0.1, without digests of its files: save it again to protect it",
            stacklevel=5,
        )
    try:
        return check_document(stored, ClassifierDocument, str(folder / DESCRIPTION))
    except DataError as error:
        raise ModelError(str(error)) from error


def _read_classes(folder: Path, stored: ClassifierDocument) -> tuple[list[ClassSupport], Any, Any]:
    """Classes with their vectors, the fitted head, the first stage; a `ModelError` where the files do not fit."""
    tensors, _ = read_arrays(folder / VECTORS)
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
        return classes, read_fitted(tensors, stored.fitted), read_first(tensors, stored.first)
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

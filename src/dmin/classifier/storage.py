"""A fitted classifier as a folder: JSON, safetensors, a card and, where it has one, its trained model; no pickle."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dmin.classifier.card import classifier_card
from dmin.classifier.knowledge import ClassSupport
from dmin.classifier.state import Settings, State, made_by, restore
from dmin.errors import ConfigError, DataError, ModelError, StorageError
from dmin.files import new_folder, read_json, read_tensors, user_path, write_atomic, write_json, write_tensors
from dmin.hub import fetch_folder, is_hub_id, send_folder
from dmin.model.folder import model_folder

FORMAT = 2
_KEPT = ("use_names", "keep_base", "unknown_label", "backend")
_NEEDED = (
    "model", "settings", "reject", "outside", "names_on", "name_weight", "descriptions", "encoder_name", "own_encoder",
    "encoder", "head", "classes",
)  # fmt: skip
_BY_NAME = ("default", "nearest")  # models that come with the package: their name is enough


def save_state(state: State, folder: Path) -> None:
    """Write classes, examples, vectors and settings; the folder appears whole or not at all."""
    for label in state.knowledge.labels:
        if not isinstance(label, str | int | float):
            raise DataError(f"label {label!r} is a {type(label).__name__}: only strings and numbers can be saved")
    if folder.is_file():
        raise StorageError(f"{folder} is a file: choose an empty or a new folder")
    if folder.exists() and not (folder / "classifier.json").is_file() and any(folder.iterdir()):
        raise StorageError(f"{folder} holds something else: choose an empty or a new folder")
    with new_folder(folder) as part:
        if str(state.settings.model) not in _BY_NAME:
            shutil.copytree(model_folder(state.settings.model), part / "model")
        entries = list(enumerate(state.knowledge.classes))
        tensors = {f"vectors.{number}": entry.vectors for number, entry in entries}
        write_tensors(part / "support.safetensors", tensors | {f"prepared.{n}": entry.prepared for n, entry in entries})
        write_json(part / "classifier.json", _description(state))
        write_atomic(part / "README.md", classifier_card(state))


def _description(state: State) -> dict[str, Any]:
    settings = state.settings
    reject: Any = settings.reject
    if isinstance(reject, Mapping):
        reject = {"by_label": [[label, float(value)] for label, value in reject.items()]}
    encoder = settings.encoder
    return {
        "format": FORMAT,
        "model": str(settings.model) if str(settings.model) in _BY_NAME else None,
        "settings": {name: _plain(getattr(settings, name)) for name in _KEPT},
        "reject": _plain(reject),
        "outside": np.asarray(settings.outside).tolist() if settings.outside is not None else None,
        "names_on": state.names_on,
        "name_weight": state.knowledge.name_weight,
        "descriptions": [[label, text] for label, text in (settings.descriptions or {}).items()],
        "encoder_name": encoder if isinstance(encoder, str) else None,
        "own_encoder": encoder is not None and not isinstance(encoder, str),
        **made_by(state.model),
        "classes": [[entry.label, list(entry.texts), entry.named] for entry in state.knowledge.classes],
    }


def load_state(path: str | Path, encoder: Any, device: str | None) -> State:
    """Read what `save_state` wrote, from a folder or a hub id."""
    folder = user_path(path)
    if not folder.exists() and is_hub_id(path):
        folder = fetch_folder(str(path), "classifier.json")
    stored = _read_description(folder)
    if stored["own_encoder"] != (encoder is not None):
        needs = "give the same encoder to load" if stored["own_encoder"] else "it brings its own: leave out encoder"
        raise ConfigError(f"{folder}: {needs}")
    reject = stored["reject"]
    settings = Settings(
        model=stored["model"] or folder / "model",
        encoder=encoder if encoder is not None else stored["encoder_name"],
        descriptions=dict(stored["descriptions"]) or None,
        reject=dict(reject["by_label"]) if isinstance(reject, dict) else reject,
        outside=stored["outside"],
        device=device,
        **stored["settings"],
    )
    tensors, _ = read_tensors(folder / "support.safetensors")
    classes = [
        ClassSupport(label, tuple(texts), named, tensors[f"vectors.{number}"], tensors[f"prepared.{number}"])
        for number, (label, texts, named) in enumerate(stored["classes"])
    ]
    try:
        return restore(settings, classes, stored["name_weight"], stored["names_on"], stored)
    except ModelError as error:
        raise ModelError(f"{folder}: {error}") from error


def _read_description(folder: Path) -> dict[str, Any]:
    """The content of `classifier.json`, whole and of this format."""
    try:
        stored: dict[str, Any] = read_json(folder / "classifier.json")
    except DataError as error:
        raise ModelError(f"{folder} holds no saved classifier: {error}") from error
    if stored.get("format") != FORMAT:
        raise ModelError(f"{folder}: classifier format {stored.get('format')!r}; this version reads format {FORMAT}")
    missing = [name for name in _NEEDED if name not in stored]
    if missing:
        raise ModelError(f"{folder}: classifier.json lacks {', '.join(missing)}; was it changed by hand?")
    return stored


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python, for JSON."""
    return value.item() if isinstance(value, np.generic) else value


def push_state(state: State, identifier: str, *, private: bool = False) -> str:
    """Save into a folder of its own and send that to the hub."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "classifier"
        save_state(state, folder)
        return send_folder(folder, identifier, private=private)

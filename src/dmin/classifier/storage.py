"""A fitted classifier as a folder: JSON, safetensors, a card and, where it has one, its trained model; no pickle."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dmin.classifier.card import classifier_card
from dmin.classifier.state import ClassSupport, Knowledge
from dmin.errors import ConfigError, DataError, ModelError, StorageError
from dmin.files import new_folder, read_json, read_tensors, write_atomic, write_json, write_tensors
from dmin.hub import fetch_folder, is_hub_id, send_folder
from dmin.methods import FewShotMethod, prepared_scoring
from dmin.model.folder import model_folder

if TYPE_CHECKING:
    from dmin.classifier.few_shot import FewShotClassifier

FORMAT = 2
_KEPT = ("use_names", "keep_base", "unknown_label", "backend")
_NEEDED = (
    "model", "settings", "reject", "outside", "names_on", "name_weight", "descriptions", "encoder_name", "own_encoder",
    "encoder", "head", "classes",
)  # fmt: skip
_BY_NAME = ("default", "nearest")  # models that come with the package: their name is enough


def save_classifier(classifier: FewShotClassifier, folder: Path) -> None:
    """Write classes, examples, vectors and settings; the folder appears whole or not at all."""
    knowledge = classifier._knowledge
    for label in knowledge.labels:
        if not isinstance(label, str | int | float):
            raise DataError(f"label {label!r} is a {type(label).__name__}: only strings and numbers can be saved")
    if folder.is_file():
        raise StorageError(f"{folder} is a file: choose an empty or a new folder")
    if folder.exists() and not (folder / "classifier.json").is_file() and any(folder.iterdir()):
        raise StorageError(f"{folder} holds something else: choose an empty or a new folder")
    with new_folder(folder) as part:
        if str(classifier.model) not in _BY_NAME:
            shutil.copytree(model_folder(classifier.model), part / "model")
        entries = list(enumerate(knowledge.classes))
        tensors = {f"vectors.{number}": entry.vectors for number, entry in entries}
        write_tensors(part / "support.safetensors", tensors | {f"prepared.{n}": entry.prepared for n, entry in entries})
        write_json(part / "classifier.json", _description(classifier))
        write_atomic(part / "README.md", classifier_card(classifier))


def _description(classifier: FewShotClassifier) -> dict[str, Any]:
    reject: Any = classifier.reject
    if isinstance(reject, Mapping):
        reject = {"by_label": [[label, float(value)] for label, value in reject.items()]}
    encoder = classifier.encoder
    return {
        "format": FORMAT,
        "model": str(classifier.model) if str(classifier.model) in _BY_NAME else None,
        "settings": {name: _plain(getattr(classifier, name)) for name in _KEPT},
        "reject": _plain(reject),
        "outside": np.asarray(classifier.outside).tolist() if classifier.outside is not None else None,
        "names_on": classifier._names_on,
        "name_weight": classifier._knowledge.name_weight,
        "descriptions": [[label, text] for label, text in (classifier.descriptions or {}).items()],
        "encoder_name": encoder if isinstance(encoder, str) else None,
        "own_encoder": encoder is not None and not isinstance(encoder, str),
        "encoder": classifier.encoder_.fingerprint if classifier.encoder_ else None,
        "head": head_digest(classifier._model.method),
        "classes": [[entry.label, list(entry.texts), entry.named] for entry in classifier._knowledge.classes],
    }


def load_classifier(
    cls: type[FewShotClassifier], path: str | Path, encoder: Any, device: str | None
) -> FewShotClassifier:
    """Read what `save_classifier` wrote."""
    folder = Path(path).expanduser()
    if not folder.exists() and is_hub_id(path):
        folder = fetch_folder(str(path), "classifier.json")
    try:
        stored = read_json(folder / "classifier.json")
    except DataError as error:
        raise ModelError(f"{folder} holds no saved classifier: {error}") from error
    if stored.get("format") != FORMAT:
        raise ModelError(f"{folder}: classifier format {stored.get('format')!r}; this version reads format {FORMAT}")
    missing = [name for name in _NEEDED if name not in stored]
    if missing:
        raise ModelError(f"{folder}: classifier.json lacks {', '.join(missing)}; was it changed by hand?")
    if stored["own_encoder"] != (encoder is not None):
        needs = "give the same encoder to load" if stored["own_encoder"] else "it brings its own: leave out encoder"
        raise ConfigError(f"{folder}: {needs}")
    reject = stored["reject"]
    classifier = cls(
        stored["model"] or folder / "model",
        encoder=encoder if encoder is not None else stored["encoder_name"],
        descriptions=dict(stored["descriptions"]) or None,
        reject=dict(reject["by_label"]) if isinstance(reject, dict) else reject,
        outside=stored["outside"],
        device=device,
        **stored["settings"],
    )
    model, _ = classifier._current()
    if model.encoder is not None and model.encoder.fingerprint != stored["encoder"]:
        raise ModelError(f"{folder}: its vectors were made by another encoder than the one that is installed")
    tensors, _ = read_tensors(folder / "support.safetensors")
    entries = []
    for number, (label, texts, named) in enumerate(stored["classes"]):
        vectors = tensors[f"vectors.{number}"].to(model.device)
        prepared = tensors[f"prepared.{number}"].to(model.device)
        entries.append(ClassSupport(label, tuple(texts), named, vectors, prepared))
    name_weight = stored["name_weight"]
    if head_digest(model.method) != stored["head"]:  # the package came with another head then: same examples, new head
        with torch.no_grad():
            entries = [
                replace(entry, prepared=prepared_scoring(model.method).prepare(entry.vectors)) for entry in entries
            ]
        name_weight = model.name_weight
    classifier._model, classifier._opened_for = model, classifier._names_of_model()
    classifier._knowledge, classifier._names_on = Knowledge(tuple(entries), name_weight), stored["names_on"]
    return classifier


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python, for JSON."""
    return value.item() if isinstance(value, np.generic) else value


def push_classifier(classifier: FewShotClassifier, identifier: str, *, private: bool = False) -> str:
    """Save into a folder of its own and send that to the hub."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "classifier"
        save_classifier(classifier, folder)
        return send_folder(folder, identifier, private=private)


def head_digest(method: FewShotMethod) -> str:
    """Names the weights of a head."""
    digest = hashlib.sha256(method.name.encode())
    for name, tensor in sorted(method.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]

"""A fitted classifier as a folder: JSON, safetensors and, where it has one, its trained model; no pickle."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from dmin.classifier.support import ClassSupport, Knowledge
from dmin.errors import ConfigError, DataError, ModelError, StorageError
from dmin.files import read_json, read_tensors, write_json, write_tensors

if TYPE_CHECKING:
    from dmin.classifier.few_shot import FewShotClassifier

FORMAT = 1
_KEPT = ("use_names", "keep_base", "reject", "unknown_label", "backend")


def save_classifier(classifier: FewShotClassifier, folder: Path) -> None:
    """Write classes, examples, vectors and settings; the folder appears whole or not at all."""
    knowledge = classifier._knowledge
    for label in knowledge.labels:
        if not isinstance(label, str | int | float):
            raise DataError(f"label {label!r} is a {type(label).__name__}: only strings and numbers can be saved")
    if folder.exists() and not (folder / "classifier.json").is_file() and any(folder.iterdir()):
        raise StorageError(f"{folder} holds something else: choose an empty or a new folder")
    settings = {name: getattr(classifier, name) for name in _KEPT}
    if isinstance(settings["reject"], Mapping):
        raise DataError("reject by label cannot be saved: save with a number, and set it again after loading")
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    trained = str(classifier.model) != "default"
    try:
        if trained:
            source = Path(classifier.model)
            shutil.copytree(source / "model" if (source / "model").is_dir() else source, part / "model")
        entries = list(enumerate(knowledge.classes))
        tensors = {f"vectors.{number}": entry.vectors for number, entry in entries}
        write_tensors(part / "support.safetensors", tensors | {f"prepared.{n}": entry.prepared for n, entry in entries})
        write_json(
            part / "classifier.json",
            {
                "format": FORMAT, "trained": trained, "settings": settings, "names_on": classifier._names_on,
                "descriptions": [[label, text] for label, text in (classifier.descriptions or {}).items()],
                "threshold": classifier.threshold_, "own_encoder": classifier.encoder is not None,
                "encoder": classifier.encoder_.fingerprint if classifier.encoder_ else None,
                "classes": [[entry.label, list(entry.texts), entry.named] for _, entry in entries],
            },
        )  # fmt: skip
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def load_classifier(cls: type[FewShotClassifier], folder: Path, encoder: Any, device: str | None) -> FewShotClassifier:
    """Read what `save_classifier` wrote."""
    try:
        stored = read_json(folder / "classifier.json")
    except DataError as error:
        raise ModelError(f"{folder} holds no saved classifier: {error}") from error
    if stored.get("format") != FORMAT:
        raise ModelError(f"{folder}: classifier format {stored.get('format')!r}; this version reads format {FORMAT}")
    if stored["own_encoder"] != (encoder is not None):
        needs = "give the same encoder to load" if stored["own_encoder"] else "it brings its own: leave out encoder"
        raise ConfigError(f"{folder}: {needs}")
    descriptions = dict(stored["descriptions"]) or None
    model = folder / "model" if stored["trained"] else "default"
    classifier = cls(model, encoder=encoder, descriptions=descriptions, device=device, **stored["settings"])
    classifier._load()
    if classifier.encoder_ is not None and classifier.encoder_.fingerprint != stored["encoder"]:
        raise ModelError(f"{folder}: its vectors were made by another encoder than the one that is installed")
    tensors, _ = read_tensors(folder / "support.safetensors")
    device_of = classifier.encoder_.network.device if classifier.encoder_ else torch.device("cpu")
    classifier._knowledge = Knowledge(
        tuple(
            ClassSupport(
                label,
                tuple(texts),
                named,
                tensors[f"vectors.{n}"].to(device_of),
                tensors[f"prepared.{n}"].to(device_of),
            )
            for n, (label, texts, named) in enumerate(stored["classes"])
        )
    )
    classifier._names_on, classifier.threshold_ = stored["names_on"], stored["threshold"]
    return classifier

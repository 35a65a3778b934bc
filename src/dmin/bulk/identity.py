"""A fitted classifier as one archive, to be sent to other machines, and a digest that identifies its answers."""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
from pathlib import Path

from dmin.classifier.state import State
from dmin.classifier.storage import save_state


def pack(state: State) -> tuple[bytes, str]:
    """A saved classifier as a tar archive, and its digest."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "classifier"
        save_state(state, folder)
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as archive:
            archive.add(folder, arcname=".")
        return content.getvalue(), _digest(folder)


def classifier_digest(state: State) -> str:
    """A digest that two classifiers share when they answer alike: of examples, settings, encoder and head."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "classifier"
        save_state(state, folder)
        return _digest(folder)


def _digest(folder: Path) -> str:
    # Examples, settings and digests of encoder and head; not the vectors, whose last digits differ by machine.
    return hashlib.sha256((folder / "classifier.json").read_bytes()).hexdigest()[:16]

"""Encoders side by side: each encoder's vector brought to norm 1, then joined."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dmin.encoder.onnx_encoder import ENCODER_FILE
from dmin.encoder.text_encoder import FloatArray, TextEncoder, check_texts, unit
from dmin.errors import ConfigError
from dmin.files import write_json


class JoinedEncoder:
    """Several encoders as one. A vector is their vectors, each of norm 1, one after the other.

    Args:
        parts: the encoders, in the order of their names.
    """

    def __init__(self, parts: Sequence[TextEncoder]) -> None:
        names = [part.name for part in parts]
        if len(set(names)) != len(names) or len(names) < 2:
            raise ConfigError(f"encoder {'+'.join(names)!r}: two or more different encoders are needed")
        self.parts = tuple(parts)
        self.name = "+".join(names)
        self.max_length = min(part.max_length for part in parts)
        self.device = next((part.device for part in parts if part.device != "cpu"), "cpu")

    @property
    def widths(self) -> tuple[int, ...]:
        """The width of each encoder's part of a vector."""
        return tuple(part.width for part in self.parts)

    @property
    def width(self) -> int:
        """The width d of a vector."""
        return sum(self.widths)

    @property
    def pooling(self) -> str:
        """The pooling of each, like "cls+layers"."""
        return "+".join(part.pooling for part in self.parts)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the encoders' fingerprints."""
        return hashlib.sha256("\n".join(part.fingerprint for part in self.parts).encode()).hexdigest()

    @property
    def key(self) -> str:
        """Key of the vector cache: all that determines a vector."""
        joined = hashlib.sha256("\n".join(part.key for part in self.parts).encode()).hexdigest()
        return f"{joined[:24]}-{self.max_length}"

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids by the first encoder."""
        return self.parts[0].tokenize(texts)

    def unreadable(self, texts: Sequence[str]) -> list[float]:
        """The part of each text's words that none of the encoders can read, at least: the smallest of their parts."""
        return [min(found) for found in zip(*(part.unreadable(texts) for part in self.parts), strict=True)]

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Return the vectors of `texts`, float32 [n, d], in their order. No cache is read or written."""
        check_texts(texts)
        found = [unit(part.encode(texts, show_progress=show_progress)) for part in self.parts]
        return np.concatenate(found, axis=1)  # [n, d]

    def refresh(self) -> None:
        """Drop what the encoders kept of their weights."""
        for part in self.parts:
            part.refresh()

    def save(self, folder: str) -> None:
        """Record the encoders by name and digest in a model folder; the weights stay where they are."""
        write_json(Path(folder) / ENCODER_FILE, {"name": self.name, "fingerprint": self.fingerprint})

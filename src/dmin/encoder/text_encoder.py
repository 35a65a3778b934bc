"""What the rest of the package needs of an encoder, whatever computes it. No torch here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeGuard, get_args

import numpy as np

from dmin.errors import ConfigError, DataError
from dmin.threads import computes_alone

FloatArray = np.ndarray[Any, np.dtype[np.float32]]
LongTexts = Literal["windows", "cut"]


class TextEncoder(Protocol):
    """Texts to vectors: the face of `Encoder`, `OnnxEncoder`, `StaticEncoder` and `JoinedEncoder`."""

    max_length: int

    @property
    def name(self) -> str:
        """A name that opens this encoder again; never "default"."""

    @property
    def width(self) -> int:
        """The width d of a vector."""

    @property
    def pooling(self) -> str:
        """How states of tokens become a vector."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of weights and pooling."""

    @property
    def key(self) -> str:
        """Key of the vector cache: all that determines a vector."""

    @property
    def device(self) -> str:
        """Where it computes, and where vectors are best kept: "cpu", "cuda:0", ..."""

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text."""

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Vectors of the texts, float32 [n, d]."""

    def unreadable(self, texts: Sequence[str]) -> list[float]:
        """Part of each text's words that the encoder cannot read, from 0 to 1."""

    def refresh(self) -> None:
        """Drop what was kept of the weights, after they changed."""

    def save(self, folder: str) -> None:
        """Write what opens this encoder again into a model folder."""


def is_text_encoder(value: object) -> TypeGuard[TextEncoder]:
    """Is it an encoder of this package, not a function or a model of another one?"""
    return all(hasattr(type(value), name) for name in ("fingerprint", "key", "encode"))


def check_texts(texts: Sequence[str]) -> None:
    """Raise an error that names the first item that is not a non-empty string."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"a list of texts is needed, not one {type(texts).__name__}: [{texts[:40]!r}]")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {index} is {text!r} ({type(text).__name__}), not a string")
        if not text.strip():
            raise DataError(f"text {index} is empty")


def check_long_texts(long_texts: str) -> None:
    """Raise a `ConfigError` unless `long_texts` is known."""
    if long_texts not in get_args(LongTexts):
        raise ConfigError(f"long_texts {long_texts!r}: use 'windows' or 'cut'")


def unit(vectors: FloatArray) -> FloatArray:
    """Vectors [n, d] of norm 1; a zero vector stays zero."""
    sizes = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.where(sizes > 0, sizes, 1)).astype(np.float32)


def usable_threads() -> int:
    """Processors that this thread may use, at most $OMP_NUM_THREADS; 1 in a thread that computes alone."""
    if computes_alone():
        return 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    chosen = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(allowed, int(chosen))) if chosen.isdigit() else allowed

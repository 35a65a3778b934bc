"""Texts to vectors: encoders by name, any Hugging Face encoder, and a cache of vectors.

Importing it does not import torch; `Encoder` and what is built on it do, when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dmin.encoder.cache import VectorCache
from dmin.encoder.joined import JoinedEncoder
from dmin.encoder.onnx_encoder import OnnxEncoder
from dmin.encoder.opening import open_encoder
from dmin.encoder.readable import UNREADABLE, cannot_read
from dmin.encoder.static import StaticEncoder
from dmin.encoder.text_encoder import FloatArray, TextEncoder

if TYPE_CHECKING:
    from dmin.encoder.encoder import Encoder, choose_device
    from dmin.encoder.network import EncoderNetwork, TokenBatch

__all__ = [
    "UNREADABLE",
    "Encoder",
    "EncoderNetwork",
    "FloatArray",
    "JoinedEncoder",
    "OnnxEncoder",
    "StaticEncoder",
    "TextEncoder",
    "TokenBatch",
    "VectorCache",
    "cannot_read",
    "choose_device",
    "open_encoder",
]
_ON_TORCH = {"Encoder": "encoder", "choose_device": "encoder", "EncoderNetwork": "network", "TokenBatch": "network"}


def __getattr__(name: str) -> Any:
    """Import what needs torch only when it is asked for."""
    if name in _ON_TORCH:
        return getattr(import_module(f"dmin.encoder.{_ON_TORCH[name]}"), name)
    raise AttributeError(f"module 'dmin.encoder' has no attribute {name!r}")

"""Texts to vectors: any Hugging Face encoder, the embedded default, and a cache of vectors."""

from dmin.encoder.cache import VectorCache
from dmin.encoder.encoder import Encoder, FloatArray, choose_device
from dmin.encoder.network import EncoderNetwork, TokenBatch

__all__ = ["Encoder", "EncoderNetwork", "FloatArray", "TokenBatch", "VectorCache", "choose_device"]

"""Vectors of a pile, through the classifier's own encoder and the cache on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dmin.errors import DataError
from dmin.progress import progress

FloatArray = np.ndarray[Any, np.dtype[np.float32]]
LOOKED_AT = 2000  # texts among which those are sought that the encoder cannot read
BLOCK = 8192  # texts encoded, and written to the cache, at once: a stop loses at most one block


def opened_encoder(classifier: Any) -> Any:
    """The encoder of a classifier, also of one that knows no class yet, so that a pile is encoded once for all uses."""
    if getattr(classifier, "__sklearn_is_fitted__", lambda: True)():
        return classifier.encoder_
    # A classifier opens its encoder when it learns its first classes; these two are never asked.
    opened = type(classifier)(**{**classifier.get_params(), "use_names": False, "reject": None})
    return opened.fit({"one": ["one"], "two": ["two"]}).encoder_


def encode_pile(texts: Sequence[str], classifier: Any = None) -> FloatArray:
    """Vectors [n, d] of texts by a classifier's encoder; without a classifier, by that of a default one."""
    if classifier is None:
        from dmin.classifier import FewShotClassifier

        classifier = FewShotClassifier()
    own = getattr(classifier, "encoder", None)
    if isinstance(own, str) and own == "precomputed":
        raise DataError("the classifier takes vectors in place of texts: give the pile's as vectors=")
    if callable(own):
        return checked(own(list(texts)), len(texts))
    from dmin.encoder import VectorCache, cannot_read

    encoder, cache = opened_encoder(classifier), VectorCache()
    vectors = np.empty((len(texts), encoder.width), np.float32)  # [n, d]
    with progress("encoding", len(texts), unit="texts", show=len(texts) > 500) as advance:
        for start in range(0, len(texts), BLOCK):
            block = texts[start : start + BLOCK]
            vectors[start : start + len(block)] = cache.encode(encoder, block)
            advance(len(block))
    cannot_read(encoder, list(texts[:LOOKED_AT]))
    return vectors


def checked(vectors: Any, count: int) -> FloatArray:
    """Vectors [n, d] that are finite and as many as there are texts.

    Raises:
        DataError: naming the first vector that cannot be used.
    """
    found = np.asarray(vectors, dtype=np.float32)
    if found.ndim != 2 or len(found) != count:
        raise DataError(f"vectors have the shape {found.shape} for {count} texts; [n, d] is needed")
    good = np.isfinite(found).all(axis=1)
    if not good.all():
        raise DataError(f"the vector of text {int(np.argmin(good))} holds NaN or infinity")
    return found


def unit(vectors: FloatArray) -> FloatArray:
    """Vectors of norm 1; a vector without a direction stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)  # [n, 1]
    found: FloatArray = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 1e-6)
    return found


def mean_direction(vectors: FloatArray) -> FloatArray:
    """The mean [d] of vectors of norm 1: the direction that sentence encoders give all texts and that says nothing."""
    mean: FloatArray = unit(vectors).mean(axis=0)
    return mean


def centred(vectors: FloatArray, mean: FloatArray | None = None) -> FloatArray:
    """Vectors of norm 1, minus the pile's `mean_direction`, of norm 1 again.

    In a pile of equal texts no direction is left: they become zero vectors, equal among themselves.
    """
    return unit(unit(vectors) - (mean_direction(vectors) if mean is None else mean))

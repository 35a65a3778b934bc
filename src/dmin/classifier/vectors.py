"""Vectors in place of texts: `FewShotClassifier(encoder="precomputed")` takes arrays where others take texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from dmin.encoder import FloatArray
from dmin.errors import DataError

PRECOMPUTED = "precomputed"


class VectorText(str):
    """Stands where a text stands, named by its vector's bytes, so that equal vectors have equal names."""

    vector: FloatArray

    @classmethod
    def of(cls, vector: Any) -> Self:
        """Name a vector [d]."""
        values = np.ascontiguousarray(vector, dtype=np.float32)
        found = cls(f"vector {hashlib.sha256(values.tobytes()).hexdigest()[:12]}")
        found.vector = values
        return found

    @staticmethod
    def rows(X: Any) -> list[VectorText]:  # noqa: N803 (scikit-learn's name)
        """The rows of an array [n, d]."""
        from sklearn.utils.validation import check_array

        if isinstance(X, list | tuple) and not len(X):
            return []
        values = check_array(X, dtype=np.float32, input_name="X")
        return [VectorText.of(row) for row in values]

    @staticmethod
    def stack(texts: Sequence[str]) -> FloatArray:
        """The vectors [n, d] that stand behind texts."""
        for row, text in enumerate(texts):
            if not isinstance(text, VectorText):
                raise TypeError(f"text {row} is {text!r}: encoder={PRECOMPUTED!r} takes vectors, not texts")
        widths = {len(text.vector) for text in texts if isinstance(text, VectorText)}
        if len(widths) > 1:
            raise DataError(f"the vectors have different widths: {', '.join(map(str, sorted(widths)))}")
        found = [text.vector for text in texts if isinstance(text, VectorText)]
        return np.stack(found) if found else np.empty((0, 0), np.float32)

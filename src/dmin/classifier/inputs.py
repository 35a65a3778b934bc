"""What a user gives: examples sorted by label, labels, vectors in place of texts; each thing that is wrong is named."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dmin.classifier.estimator import conversion_warning
from dmin.encoder import FloatArray
from dmin.errors import DataError

PRECOMPUTED = "precomputed"
LARGEST_NUMBER, SMALLEST_NUMBER = 1e15, 1e-6  # of the numbers in a vector; beyond, its squares leave float32's range


class VectorText(str):
    """Stands where a text stands, named by its vector's bytes, so that equal vectors have equal names."""

    vector: FloatArray

    @classmethod
    def of(cls, vector: Any) -> Self:
        """Name a vector [d]."""
        values = np.ascontiguousarray(safe_vectors(np.asarray(vector).reshape(1, -1))[0])
        found = cls(f"vector {hashlib.sha256(values.tobytes()).hexdigest()[:12]}")
        found.vector = values
        return found

    @staticmethod
    def list_of(X: Any) -> list[VectorText]:  # noqa: N803 (scikit-learn's name)
        """The vectors of an array [n, d]."""
        if isinstance(X, list | tuple) and not len(X):
            return []
        values = read_vectors(X)  # [n, d]
        return [VectorText.of(vector) for vector in values]

    @staticmethod
    def stack(texts: Sequence[str]) -> FloatArray:
        """The vectors [n, d] that stand behind texts."""
        for index, text in enumerate(texts):
            if not isinstance(text, VectorText):
                raise TypeError(f"text {index} is {text!r}: encoder={PRECOMPUTED!r} takes vectors, not texts")
        widths = {len(text.vector) for text in texts if isinstance(text, VectorText)}
        if len(widths) > 1:
            raise DataError(f"the vectors have different widths: {', '.join(map(str, sorted(widths)))}")
        found = [text.vector for text in texts if isinstance(text, VectorText)]
        return np.stack(found) if found else np.empty((0, 0), np.float32)


def read_vectors(X: Any) -> NDArray[np.float64]:  # noqa: N803
    """Vectors [n, d] of any kind of table, finite; errors are worded as scikit-learn words them."""
    if hasattr(X, "tocsr") and hasattr(X, "nnz"):
        raise TypeError("Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert it")
    values = np.asarray(X)
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has the type {values.dtype}")
    if values.ndim != 2:
        shape = "a scalar" if values.ndim == 0 else f"an array of {values.ndim} dimensions"
        raise ValueError(
            f"X: Expected 2D array, got {shape} instead. Reshape your data: X.reshape(-1, 1) if it has a single feature, "
            "X.reshape(1, -1) if it is a single vector"
        )
    for size, what in zip(values.shape, ("sample", "feature"), strict=True):
        if size < 1:
            raise ValueError(f"Found array with 0 {what}(s) (shape={values.shape}) while a minimum of 1 is required.")
    if values.dtype.kind in "USO" and any(isinstance(value, str) for value in values.flat):
        raise TypeError("X holds texts: encoder='precomputed' takes vectors of numbers; argument must be numbers")
    found = values.astype(np.float64)
    if not np.isfinite(found).all():
        raise ValueError(f"Input X contains {'NaN' if np.isnan(found).any() else 'infinity'}.")
    return found


def read_queries(X: Sequence[Any], precomputed: bool) -> Sequence[str]:  # noqa: N803
    """Texts as they are; vectors, where they are given in place of texts, under a name."""
    return VectorText.list_of(X) if precomputed else X


def read_examples(X: Any, y: Iterable[Any] | None, precomputed: bool) -> dict[Any, list[str]]:  # noqa: N803
    """The examples of each class, from `{label: [texts]}` or from texts `X` with labels `y`."""
    if not precomputed:
        return group_examples(X, y)
    if isinstance(X, Mapping) and not hasattr(X, "shape"):  # some sparse matrices are mappings too
        return group_examples({label: VectorText.list_of(vectors) for label, vectors in X.items()}, y)
    return group_examples(VectorText.list_of(X), y)


def group_examples(X: Any, y: Iterable[Any] | None) -> dict[Any, list[str]]:  # noqa: N803
    """Examples by label; with labels `y`, classes in sorted order where they sort."""
    if isinstance(X, Mapping):
        if y is not None:
            raise TypeError("give either a mapping or texts with labels, not both")
        groups = _from_mapping(X)
        _check_examples(groups)
        return groups
    if y is None:
        raise DataError(
            "FewShotClassifier requires y to be passed, but the target y is None: texts need labels, fit(texts, labels), "
            "or a mapping, fit({label: [texts]})"
        )
    if isinstance(X, str | bytes):
        raise TypeError(f"a list of texts is needed, not one {type(X).__name__}")
    if hasattr(X, "columns"):
        raise TypeError("a column of texts is needed, not a table: table['text']")
    groups = _from_pairs(list(X), read_labels(y))
    _check_examples(groups)
    try:
        return dict(sorted(groups.items()))
    except TypeError:  # labels of several types do not sort
        return groups


def check_label(label: Any) -> None:
    """Raise an error that names a label which cannot be one."""
    if not isinstance(label, Hashable):
        raise TypeError(f"label {label!r} ({type(label).__name__}): a label must be hashable")
    if label is None:
        raise DataError("None is no label")
    _check_spaces(label)


def read_labels(y: Any) -> list[Any]:
    """Labels as plain Python values; a column [n, 1] is read as one dimension [n], with scikit-learn's warning."""
    if hasattr(y, "__array__") and not isinstance(y, list | tuple):
        values = np.asarray(y)
        if values.ndim == 2 and values.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected; it is read as one dimension",
                conversion_warning(),
                stacklevel=5,
            )
            values = values.ravel()
        if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)) and np.isfinite(values).all():
            raise DataError("Unknown label type: continuous. Classes are words or whole numbers, not measurements")
        y = values
    return [_plain(label) for label in y]


def label_array(labels: Sequence[Any]) -> NDArray[Any]:
    """Labels of one plain type as an array of that type; anything else as objects, each as it was given."""
    if labels and len({type(label) for label in labels}) == 1 and isinstance(labels[0], str | int | float | np.generic):
        return np.array(labels)
    found = np.empty(len(labels), dtype=object)
    found[:] = labels
    return found


def _from_mapping(examples: Mapping[Any, Any]) -> dict[Any, list[str]]:
    groups = {}
    for key, texts in examples.items():
        label = _plain(key)
        if label is None or label != label:
            raise DataError(f"{label!r} is no label")
        _check_spaces(label)
        if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
            what = "one string" if isinstance(texts, str | bytes) else repr(texts)[:200]
            raise TypeError(f"class {label!r}: a list of texts is needed, not {what}")
        groups[label] = list(texts)
    return groups


def _from_pairs(texts: Sequence[str], labels: Sequence[Any]) -> dict[Any, list[str]]:
    if len(texts) != len(labels):
        raise DataError(f"{len(texts)} texts but {len(labels)} labels")
    groups: dict[Any, list[str]] = {}
    for index, (text, label) in enumerate(zip(texts, labels, strict=True)):
        if isinstance(label, list | tuple | set | dict | np.ndarray):
            raise TypeError(
                f"label {index} is {label!r}: several labels per text are not supported; train one classifier per label, "
                "or give the text once for each label and use predict_top_k"
            )
        if not isinstance(label, Hashable):
            raise TypeError(f"label {index} is {label!r} ({type(label).__name__}): a label must be hashable")
        if label is None or type(label).__name__ == "NAType" or (isinstance(label, float) and label != label):
            raise DataError(f"label {index} is {label!r}")
        if label not in groups:
            _check_spaces(label)
        groups.setdefault(label, []).append(text)
    return groups


def _check_spaces(label: Any) -> None:
    """Labels of files are read without white space around them: one with it would be another class."""
    if isinstance(label, str) and label != label.strip():
        raise DataError(f"label {label[:60]!r} begins or ends with white space: use {label.strip()[:60]!r}")


def _check_examples(groups: Mapping[Any, Sequence[Any]]) -> None:
    for label, texts in groups.items():
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"class {label!r}, example {index} is {text!r} ({type(text).__name__}), not a string")
            if not text.strip():
                raise DataError(f"class {label!r}, example {index} is empty")


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python."""
    return value.item() if isinstance(value, np.generic) else value


def safe_vectors(vectors: Any) -> FloatArray:
    """Vectors [n, d] as float32; those whose squared norm float32 cannot hold are scaled to norm 1, in float64.

    Only vectors that come from outside are given to it, and they are compared by their cosines, which do not change. A
    vector of zeros stays: it has the cosine 0 with everything.
    """
    exact = np.asarray(vectors, dtype=np.float64)
    largest = np.abs(exact).max(axis=1, keepdims=True, initial=0.0)  # [n, 1]
    odd = ((largest > LARGEST_NUMBER) | (largest < SMALLEST_NUMBER)) & (largest > 0)
    if odd.any():
        scaled = exact / np.where(odd, largest, 1.0)
        exact = np.where(odd, scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1.0), exact)
    return exact.astype(np.float32)

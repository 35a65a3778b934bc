"""Examples as a user gives them, sorted by label, each thing that is wrong named."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dmin.classifier.state import Knowledge
from dmin.errors import DataError


def group_examples(X: Any, y: Iterable[Any] | None) -> dict[Any, list[str]]:  # noqa: N803
    """Examples by label, each thing that is wrong named; with labels `y`, classes in sorted order where they sort."""
    if isinstance(X, Mapping):
        if y is not None:
            raise TypeError("give either a mapping or texts with labels, not both")
        groups = {}
        for key, texts in X.items():
            label = key.item() if isinstance(key, np.generic) else key
            if label is None or label != label:
                raise DataError(f"{label!r} is no label")
            if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
                what = "one string" if isinstance(texts, str | bytes) else repr(texts)
                raise TypeError(f"class {label!r}: a list of texts is needed, not {what}")
            groups[label] = list(texts)
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
    texts, labels = list(X), read_labels(y)
    if len(texts) != len(labels):
        raise DataError(f"{len(texts)} texts but {len(labels)} labels")
    groups = {}
    for row, (text, label) in enumerate(zip(texts, labels, strict=True)):
        if isinstance(label, list | tuple | set | dict | np.ndarray):
            raise TypeError(
                f"label {row} is {label!r}: several labels a text are not supported; train one classifier a label, or "
                "give the text once for each label and use predict_top_k"
            )
        if not isinstance(label, Hashable):
            raise TypeError(f"label {row} is {label!r} ({type(label).__name__}): a label must be hashable")
        if label is None or type(label).__name__ == "NAType" or (isinstance(label, float) and label != label):
            raise DataError(f"label {row} is {label!r}")
        groups.setdefault(label, []).append(text)
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


def read_labels(y: Any) -> list[Any]:
    """Labels as plain Python values; a column [n, 1] is read as a row, with scikit-learn's warning."""
    if hasattr(y, "__array__") and not isinstance(y, list | tuple):
        values = np.asarray(y)
        if values.ndim == 2 and values.shape[1] == 1:
            from sklearn.exceptions import DataConversionWarning

            warnings.warn(
                "A column-vector y was passed when a 1d array was expected; it is read as one row",
                DataConversionWarning,
                stacklevel=4,
            )
            values = values.ravel()
        if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)) and np.isfinite(values).all():
            raise DataError("Unknown label type: continuous. Classes are words or whole numbers, not measurements")
        y = values
    return [label.item() if isinstance(label, np.generic) else label for label in y]


def _check_examples(groups: Mapping[Any, Sequence[Any]]) -> None:
    for label, texts in groups.items():
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"class {label!r}, example {row} is {text!r} ({type(text).__name__}), not a string")
            if not text.strip():
                raise DataError(f"class {label!r}, example {row} is empty")


def warn_of_contradictions(rows: Mapping[Any, Sequence[str]], known: Knowledge) -> None:
    """Say which texts stand under two classes, among these and those that are known."""
    owner: dict[str, Any] = {
        text: entry.label for entry in known.classes if entry.label not in rows for text in entry.examples
    }
    for label, texts in rows.items():
        for text in texts:
            other = owner.setdefault(text, label)
            if other != label:
                warnings.warn(f"the text {text!r} stands under two classes: {other!r} and {label!r}", stacklevel=5)

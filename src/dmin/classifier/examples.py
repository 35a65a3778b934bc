"""Examples as a user gives them, sorted by label, each thing that is wrong named."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dmin.classifier.support import Knowledge
from dmin.errors import DataError


def group_examples(X: Any, y: Iterable[Any] | None) -> dict[Any, list[str]]:  # noqa: N803
    """Examples by label, each thing that is wrong named; with labels `y`, classes in sorted order where they sort."""
    if isinstance(X, Mapping):
        if y is not None:
            raise TypeError("give either a mapping or texts with labels, not both")
        groups = {}
        for label, texts in X.items():
            if label is None or label != label:
                raise DataError(f"{label!r} is no label")
            if isinstance(texts, str | bytes):
                raise TypeError(f"class {label!r}: a list of texts is needed, not one string")
            groups[label] = list(texts)
        _check_examples(groups)
        return groups
    if y is None:
        raise TypeError("texts need labels: fit(texts, labels), or fit({label: [texts]})")
    texts, labels = list(X), [label.item() if isinstance(label, np.generic) else label for label in y]
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
        if label is None or (isinstance(label, float) and label != label):
            raise DataError(f"label {row} is {label!r}")
        groups.setdefault(label, []).append(text)
    _check_examples(groups)
    try:
        return dict(sorted(groups.items()))
    except TypeError:  # labels of several types do not sort
        return groups


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

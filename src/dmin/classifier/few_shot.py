"""`FewShotClassifier`: what an application holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from dmin.encoder import Encoder, FloatArray
from dmin.errors import DataError, unknown_name
from dmin.methods import FewShotMethod, create
from dmin.training import load_model

# Floats of one intermediate tensor [queries, classes, examples, width]; bounds the memory of a prediction.
_BLOCK = 32_000_000


@dataclass(frozen=True)
class Explanation:
    """Why a text got its label."""

    text: str
    label: str
    score: float
    runner_up: str | None
    examples: list[tuple[str, float]]  # support text of the winning class, its exact share of the score


@dataclass(frozen=True)
class _Class:
    texts: tuple[str, ...]
    vectors: Tensor  # [K, d]


class FewShotClassifier:
    """Classifies texts from a few examples of each class, without training at fit.

    Args:
        model: "default" (the embedded encoder with nearest prototypes), or the folder of a run or model.
        device: where to compute; without one, a GPU where there is one.

    Example:
        >>> classifier = FewShotClassifier().fit({"refund": ["I want my money back"], "parcel": ["where is my order"]})
        >>> classifier.predict(["please return what I paid"])
        ['refund']
    """

    def __init__(self, model: str | Path = "default", *, device: str | None = None) -> None:
        self.model, self.device = model, device
        self.encoder_: Encoder
        self._method: FewShotMethod
        if model == "default":
            self.encoder_, self._method = Encoder(device=device), create("nearest", 0, way=0, shot=0)
        else:
            trained = load_model(Path(model), device=device)
            self.encoder_, self._method = trained.encoder, trained.method
        self._classes: dict[str, _Class] = {}

    @property
    def classes_(self) -> list[str]:
        """The class names, in the order of the columns of `decision_function`."""
        return list(self._classes)

    def fit(self, X: Mapping[str, Sequence[str]] | Sequence[str], y: Sequence[str] | None = None) -> Self:  # noqa: N803
        """Learn the classes from `{label: [texts]}`, or from texts `X` with labels `y`; what was known is replaced."""
        self._classes = self._encode_classes(_as_mapping(X, y))
        return self

    def add_class(self, label: str, texts: Sequence[str]) -> Self:
        """Add a class; the others are not touched."""
        if label in self._classes:
            raise DataError(f"class {label!r} is there already")
        self._classes = {**self._classes, **self._encode_classes({label: texts})}
        return self

    def remove_class(self, label: str) -> Self:
        """Forget a class."""
        if label not in self._classes:
            raise unknown_name("class", label, self._classes)
        self._classes = {name: known for name, known in self._classes.items() if name != label}
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        """The most likely class of each text."""
        names = self.classes_
        return [names[index] for index in self.decision_function(texts).argmax(axis=1)]

    @torch.no_grad()
    def decision_function(self, texts: Sequence[str]) -> FloatArray:
        """The score of each class for each text, [texts, classes]."""
        support, mask = self._support()
        query = self._vectors(texts)  # [L, d]
        step = max(1, _BLOCK // support.numel())
        blocks = [self._method(support, query[at : at + step], mask) for at in range(0, len(query), step)]
        if not blocks:
            return np.empty((0, len(self._classes)), np.float32)
        scores: FloatArray = torch.cat(blocks).float().cpu().numpy()
        return scores

    @torch.no_grad()
    def explain(self, text: str) -> Explanation:
        """The decision for one text, with each example's exact share of the winning score, largest first."""
        support, mask = self._support()
        query = self._vectors([text])
        scores = self._method(support, query, mask)[0]  # [C]
        order = scores.argsort(descending=True).tolist()
        names = self.classes_
        shares = self._method.contributions(support, query, mask)[0, order[0]]  # [K]
        texts = self._classes[names[order[0]]].texts
        examples = sorted(zip(texts, shares[: len(texts)].tolist(), strict=True), key=lambda pair: -pair[1])
        runner_up = names[order[1]] if len(order) > 1 else None
        return Explanation(text, names[order[0]], float(scores[order[0]]), runner_up, examples)

    def _encode_classes(self, examples: Mapping[str, Sequence[str]]) -> dict[str, _Class]:
        if not examples:
            raise DataError("no classes were given")
        for label, texts in examples.items():
            if isinstance(texts, str):
                raise TypeError(f"class {label!r}: a list of texts is needed, not one string")
            if not len(texts):
                raise DataError(f"class {label!r} has no example")
        vectors = self._vectors([text for texts in examples.values() for text in texts])
        classes, start = {}, 0
        for label, texts in examples.items():
            classes[label] = _Class(tuple(texts), vectors[start : start + len(texts)])
            start += len(texts)
        return classes

    def _support(self) -> tuple[Tensor, Tensor]:
        """All classes padded to the largest: vectors [C, K, d] and mask [C, K]."""
        if not self._classes:
            raise DataError("the classifier knows no class yet: call fit, or add_class")
        known = list(self._classes.values())
        largest = max(len(entry.vectors) for entry in known)
        support = torch.zeros(len(known), largest, self.encoder_.width, device=known[0].vectors.device)
        mask = torch.zeros(len(known), largest, dtype=torch.bool, device=support.device)
        for row, entry in enumerate(known):
            support[row, : len(entry.vectors)] = entry.vectors
            mask[row, : len(entry.vectors)] = True
        return support, mask

    def _vectors(self, texts: Sequence[str]) -> Tensor:
        return torch.from_numpy(self.encoder_.encode(texts)).to(self.encoder_.network.device)


def _as_mapping(X: Any, y: Iterable[str] | None) -> Mapping[str, Sequence[str]]:  # noqa: N803
    if isinstance(X, Mapping):
        if y is not None:
            raise TypeError("give either a mapping or texts with labels, not both")
        return {label: texts if isinstance(texts, str) else list(texts) for label, texts in X.items()}
    if y is None:
        raise TypeError("texts need labels: fit(texts, labels), or fit({label: [texts]})")
    texts, labels = list(X), list(y)
    if len(texts) != len(labels):
        raise DataError(f"{len(texts)} texts but {len(labels)} labels")
    grouped: dict[str, list[str]] = {}
    for text, label in zip(texts, labels, strict=True):
        grouped.setdefault(label, []).append(text)
    return grouped

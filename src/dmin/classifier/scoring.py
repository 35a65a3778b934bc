"""Encoder and method of a classifier: texts to vectors, vectors to cosines and to the scores that decide."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dmin.adaptive import Head
from dmin.classifier.inputs import PRECOMPUTED, VectorText, safe_vectors
from dmin.classifier.knowledge import ClassSupport, Knowledge
from dmin.encoder import TextEncoder, open_encoder
from dmin.encoder.opening import is_frozen
from dmin.encoder.text_encoder import check_texts, is_text_encoder
from dmin.errors import ConfigError, DataError, ModelError
from dmin.methods import (
    FewShotMethod,
    KeepsBaseClasses,
    LimitsSupport,
    ReadsMemory,
    create,
    exact_shares,
    prepared_scoring,
    score_prepared,
)
from dmin.methods.adaptive import Adaptive
from dmin.model import load_model, shipped_head
from dmin.model.adaptive_head import NAME, AdaptiveSetup, adaptive_setup, knows_encoder
from dmin.model.calibration import Calibration
from dmin.threads import one_thread

QUERY_BLOCK = 128  # queries scored at once; with `knowledge.BLOCK_ROWS` it bounds the memory of a prediction
FEW_SCORES = 4096  # queries times classes: up to here one thread is as fast as two
PLAIN_SCALE = 20.0  # of probabilities where nothing was calibrated
SHIPPED = "dmin-plus"  # the name of the trained head that comes with the package

Encode = Callable[[Sequence[str]], Any]


@dataclass(frozen=True)
class Model:
    """An encoder (or the user's own in its place), a method, and the calibration of its scores.

    Args:
        method: what scores; a stand-in where the adaptive head does.
        encoder: None where `own` makes the vectors, or they are given.
        own: the user's encoder.
        base_classes: of a trained method with a memory.
        calibration: from scores to probabilities and to refusals.
        setup: of the adaptive head, where that is the method.
        head: the adaptive head, fitted to the classes of one state; its columns are in their order.
    """

    method: FewShotMethod
    encoder: TextEncoder | None
    own: Encode | None = None
    base_classes: tuple[str, ...] = ()
    calibration: Calibration | None = None
    own_classes: bool = False  # trained with all_classes: its base classes are answered, with or without others
    setup: AdaptiveSetup | None = None
    head: Head | None = None

    @property
    def device(self) -> torch.device:
        """Where vectors live."""
        return torch.device(self.encoder.device if self.encoder else "cpu")

    @property
    def name_weight(self) -> float:
        """How many examples a class's name is worth."""
        return self.calibration.name_weight if self.calibration else 1.0

    def vectors(self, texts: Sequence[str], width: int | None) -> Tensor:
        """Vectors [n, d]; `width` is what they must have, if that is known."""
        check_texts(texts)
        if self.encoder is not None:
            found = self.encoder.encode(list(texts))
            check_finite(found, "the encoder gave", texts)
            return torch.from_numpy(found).to(self.device)
        if self.own is not None:
            given, who = np.asarray(self.own(list(texts))), "the encoder gave"
        else:
            given, who = VectorText.stack(texts), "X holds"
        if given.ndim != 2 or len(given) != len(texts):
            raise DataError(f"{who} an array of shape {given.shape} for {len(texts)} texts; [n, d] is needed")
        check_finite(given, who, texts)
        vectors = safe_vectors(given)
        if len(vectors) and width is not None and vectors.shape[1] != width:
            if self.own is None:  # in scikit-learn's words
                raise DataError(
                    f"X has {vectors.shape[1]} features, but FewShotClassifier is expecting {width} features as input"
                )
            raise DataError(f"{who} vectors of width {vectors.shape[1]}; the classes have width {width}")
        return torch.from_numpy(vectors)

    @torch.no_grad()
    def cosines(self, query: Tensor, knowledge: Knowledge, *, keep_base: bool = False) -> Tensor:
        """Raw similarities [L, classes (+ base classes)]; many queries go part by part, classes block by block."""
        if self.head is not None:
            return torch.from_numpy(np.ascontiguousarray(self.head.cosines(self._rows(query))))
        columns = len(knowledge.classes) + (len(self.base_classes) if keep_base else 0)
        scores = query.new_empty(len(query), columns)
        with one_thread(query.device.type == "cpu" and len(query) * columns <= FEW_SCORES):
            for at in range(0, len(query), QUERY_BLOCK):
                scores[at : at + QUERY_BLOCK] = self._part(query[at : at + QUERY_BLOCK], knowledge, keep_base)
        return check_scores(scores.float())

    @torch.no_grad()
    def scores(
        self, query: Tensor, knowledge: Knowledge, cosines: Tensor | None = None, *, keep_base: bool = False
    ) -> Tensor:
        """The deciding scores [L, classes (+ base classes)]: the cosines, unless the adaptive head decides."""
        if cosines is None:
            cosines = self.cosines(query, knowledge, keep_base=keep_base)
        if self.head is None:
            return cosines
        return torch.from_numpy(np.ascontiguousarray(self.head.scores(self._rows(query), cosines.numpy())))

    def _rows(self, query: Tensor) -> Any:
        """Vectors [L, d] as the adaptive head compares them."""
        if self.head is None:
            raise TypeError("the adaptive head is not fitted")
        return self.head.view(query.float().cpu().numpy())

    def _part(self, query: Tensor, knowledge: Knowledge, keep_base: bool) -> Tensor:
        """The columns of each block put in their place, then the base classes."""
        method, scoring, found = self.method, prepared_scoring(self.method), []
        if knowledge.classes:
            queries = scoring.query_side(query)
            blocks = (knowledge.whole,) if method.traits.joint else knowledge.blocks
            sides = (block.side(method, knowledge.name_weight) for block in blocks)
            scores = torch.cat([scoring.score_sides(side, queries) for side in sides], dim=1)
            order = None if method.traits.joint else knowledge.order
            found.append((scores if order is None else scores[:, order]) / method.temperature)
        if keep_base and isinstance(method, KeepsBaseClasses):
            offset = self.calibration.offset(knowledge.mean_size) if self.calibration else 0.0
            found.append(method.base_scores(query) / method.temperature + offset)
        return torch.cat(found, dim=1)

    @torch.no_grad()
    def shares(self, entry: ClassSupport, query: Tensor, name_weight: float) -> tuple[Tensor, list[float]]:
        """Each row's exact part of a class's cosine with one query [1, d], and the cosine without that row."""
        weights = entry.weights(name_weight)
        rows, counts = entry.prepared.unsqueeze(0), weights.unsqueeze(0)
        if (method := exact_shares(self.method)) is not None:
            parts = method.contributions(rows, query, None, counts)[0, 0] / self.method.temperature  # [K]
        else:
            parts = torch.full((len(entry.texts),), float("nan"))
        return parts, [self.without(entry, row, query, name_weight) for row in range(len(entry.texts))]

    @torch.no_grad()
    def head_shares(self, column: int, query: Tensor) -> tuple[NDArray[np.float64], float, list[float]]:
        """Of the adaptive head: every row's exact part [n] of a class's score, what else has a part, and the score without
        each of the class's own rows.
        """
        if self.head is None:
            raise TypeError("the adaptive head is not fitted")
        asked, size = self._rows(query)[0], self.head.sizes[column]
        without = [self.head.without(asked, column, row)[1] if size > 1 else float("nan") for row in range(size)]
        return *self.head.shares(asked, column), without

    @torch.no_grad()
    def without(self, entry: ClassSupport, row: int, query: Tensor, name_weight: float, column: int = 0) -> float:
        """The cosine of a class with one query [1, d] if one of its rows were not there; NaN if it is the only one.

        The adaptive head needs the class's column too.
        """
        rest = [index for index in range(len(entry.texts)) if index != row]
        if not rest:
            return float("nan")
        if self.head is not None:
            return self.head.without(self._rows(query)[0], column, row)[0]
        weights = entry.weights(name_weight)[rest].unsqueeze(0)
        score = score_prepared(self.method, entry.prepared[rest].unsqueeze(0), query, None, weights)
        return float(score[0, 0]) / self.method.temperature

    @torch.no_grad()
    def memory_of(self, entry: ClassSupport, most: int = 5) -> tuple[tuple[str, float], ...]:
        """The base classes that shaped a class's vectors most, with their weight; nothing where no memory is read."""
        weights = self.method.memory_weights(entry.vectors) if isinstance(self.method, ReadsMemory) else None
        if weights is None:
            return ()
        mean = weights.mean(dim=0)  # [N]
        order = mean.abs().argsort(descending=True)[:most].tolist()
        return tuple((self.base_classes[index], float(mean[index])) for index in order if abs(mean[index]) > 1e-6)


def check_finite(vectors: Any, who: str, texts: Sequence[str]) -> None:
    """Raise an error that names the first text whose vector holds NaN or infinity."""
    bad = ~np.isfinite(vectors)
    if bad.any():
        index = int(np.argwhere(bad)[0, 0])
        raise DataError(f"{who} a vector with NaN or infinity for text {index} ({texts[index]!r})")


def check_scores(scores: Tensor) -> Tensor:
    """The same scores, if all of them are finite; NaN would be answered as the first class."""
    if not torch.isfinite(scores).all():
        row = int((~torch.isfinite(scores)).nonzero()[0, 0])
        raise ModelError(f"the score of text {row} is NaN or infinite: the model's weights or the vectors are damaged")
    return scores


def open_model(model: str | Path, encoder: Encode | str | None, device: str | None, backend: str = "auto") -> Model:
    """The model of a name: "default", "adaptive", "nearest", "dmin-plus", the folder of a run or model, or a hub id."""
    name = str(model)
    if encoder is not None:
        return _on_encoder(name, encoder, device, backend)
    if (Path(model) / "classifier.json").is_file():
        raise ConfigError(f"{name!r} is a saved classifier, not a model: FewShotClassifier.load({name!r})")
    if name == "nearest":
        return Model(_nearest(), open_encoder("minilm", device=device, backend=backend))
    if name in ("default", NAME):
        return _adaptive(open_encoder(device=device, backend=backend))
    trained = load_model(shipped_head() if name == SHIPPED else model, device=device, backend=backend)
    method, info = trained.method, trained.info
    if method.inputs != "vectors":
        raise ConfigError(f"a {info.method} model cannot classify by itself: use dmin evaluate")
    if isinstance(method, LimitsSupport):
        method.limit_support(info.shot)
    calibration = Calibration.from_dict(info.calibration) if info.calibration else None
    own_classes = bool(info.trained_on.get("all_classes"))
    return Model(method, trained.encoder, None, info.base_classes, calibration, own_classes)


def head_digest(method: FewShotMethod) -> str:
    """A digest of the weights of a head."""
    digest = hashlib.sha256(method.name.encode())
    for name, tensor in sorted(method.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _on_encoder(model: str, encoder: Encode | str, device: str | None, backend: str) -> Model:
    """The adaptive head on a named encoder whose spread is stored; nearest prototypes on any other, unless asked for it."""
    if model not in ("default", NAME, "nearest"):
        raise ConfigError("a trained model brings its own encoder: leave out encoder, or use model='default'")
    opened, own = None, None
    if isinstance(encoder, str) and encoder != PRECOMPUTED:
        pooling = "auto" if is_frozen(encoder) else "mean"
        opened = open_encoder(encoder, pooling=pooling, device=device, backend=backend)
    elif backend not in ("auto", "torch"):
        raise ConfigError(f"backend {backend!r} is for encoders that dmin loads; this one brings its own vectors")
    elif is_text_encoder(encoder):
        opened = encoder
    else:
        own = None if isinstance(encoder, str) else encoder
    known = opened is not None and knows_encoder(opened.name, opened.width)
    if model == NAME or (model == "default" and known):
        return _adaptive(opened, own)
    return Model(_nearest(), opened, own)


def _adaptive(encoder: TextEncoder | None, own: Encode | None = None) -> Model:
    setup = adaptive_setup(encoder.name if encoder else None, encoder.width if encoder else None)
    return Model(Adaptive(), encoder, own, calibration=setup.calibration, setup=setup)


def _nearest() -> FewShotMethod:
    return create("nearest", 0, way=0, shot=0)

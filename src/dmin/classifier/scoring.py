"""Encoder and method of a classifier: texts to vectors, vectors to cosines and to the scores that decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmin.adaptive import Head
from dmin.adaptive.index import ClassIndex, candidate_scores
from dmin.adaptive.namespace import array_namespace
from dmin.classifier.arrays import Array, as_numpy, as_torch, computing, like, take
from dmin.classifier.inputs import PRECOMPUTED, VectorText, safe_vectors
from dmin.classifier.knowledge import ClassSupport, Knowledge
from dmin.classifier.scorers import AdaptiveScorer, NearestPrototypes, Scorer, as_scorer
from dmin.encoder import FloatArray, TextEncoder, open_encoder
from dmin.encoder.opening import is_frozen
from dmin.encoder.text_encoder import check_texts, is_text_encoder
from dmin.errors import ConfigError, DataError, ModelError
from dmin.extras import needed_for
from dmin.model import shipped_head
from dmin.model.adaptive_head import NAME, AdaptiveSetup, adaptive_setup, knows_encoder
from dmin.model.calibration import Calibration

QUERY_BLOCK = 128  # queries scored at once; with `knowledge.BLOCK_ROWS` it bounds the memory of a prediction
PLAIN_SCALE = 20.0  # of probabilities where nothing was calibrated
SHIPPED = "dmin-plus"  # the name of the trained head that comes with the package

Encode = Callable[[Sequence[str]], Any]


@dataclass(frozen=True)
class Model:
    """An encoder (or the user's own in its place), a method, and the calibration of its scores.

    Args:
        method: what scores: a `Scorer`, or a method of the registry; a stand-in where the adaptive head does.
        encoder: None where `own` makes the vectors, or they are given.
        own: the user's encoder.
        base_classes: of a trained method with a memory.
        calibration: from scores to probabilities and to refusals.
        own_classes: trained with all_classes: its base classes are answered, with or without others.
        setup: of the adaptive head, where that is the method.
        head: the adaptive head, fitted to the classes of one state; its columns are in their order.
        indexed: are candidate classes found by an index?
        index: that index, of the classes of the head.
        on_torch: keep vectors as tensors of torch, also where numpy could score them.
    """

    method: Any
    encoder: TextEncoder | None
    own: Encode | None = None
    base_classes: tuple[str, ...] = ()
    calibration: Calibration | None = None
    own_classes: bool = False
    setup: AdaptiveSetup | None = None
    head: Head | None = None
    indexed: bool = False
    index: ClassIndex | None = None
    on_torch: bool = False

    @cached_property
    def scorer(self) -> Scorer:
        """What scores, but for the adaptive head."""
        return as_scorer(self.method)

    @property
    def device(self) -> str:
        """Where vectors live; the adaptive head computes on the CPU."""
        return self.encoder.device if self.encoder and self.setup is None else "cpu"

    def place(self, array: Any) -> Array:
        """An array as this model computes with it: of numpy, or a tensor where torch is needed or asked for."""
        if self.on_torch or self.device != "cpu" or not isinstance(self.method, Scorer):
            return as_torch(array, self.device)
        return as_numpy(array)

    @property
    def name_weight(self) -> float:
        """How many examples a class's name is worth."""
        return self.calibration.name_weight if self.calibration else 1.0

    def vectors(self, texts: Sequence[str], width: int | None) -> Array:
        """Vectors [n, d]; `width` is what they must have, if that is known."""
        check_texts(texts)
        if self.encoder is not None:
            found = self.encoder.encode(list(texts))
            check_finite(found, "the encoder gave", texts)
            return self.place(found)
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
        return self.place(vectors)

    def cosines(self, query: Array, knowledge: Knowledge, *, keep_base: bool = False) -> Array:
        """Raw similarities [L, classes (+ base classes)]; many queries go part by part, classes block by block."""
        columns = len(knowledge.classes) + (len(self.base_classes) if keep_base else 0)
        with computing(query, len(query) * columns):
            if self.head is not None:
                return self.head.cosines(self._rows(query))
            xp = array_namespace(query)
            parts = [
                xp.astype(self._part(query[at : at + QUERY_BLOCK], knowledge, keep_base), xp.float32)
                for at in range(0, len(query), QUERY_BLOCK)
            ]
            empty = like(np.empty((0, columns), np.float32), query)
            return check_scores(xp.concat(parts, axis=0) if parts else empty)

    def scores(
        self, query: Array, knowledge: Knowledge, cosines: Array | None = None, *, keep_base: bool = False
    ) -> Array:
        """The deciding scores [L, classes (+ base classes)]: the cosines, unless the adaptive head decides."""
        if cosines is None:
            cosines = self.cosines(query, knowledge, keep_base=keep_base)
        if self.head is None:
            return cosines
        with computing(query, len(query) * len(knowledge.classes)):
            return self.head.scores(self._rows(query), cosines)

    def candidates(self, query: Array) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
        """(columns, cosines, deciding scores) of the candidates that the index finds for vectors [L, d]; all [L, k]."""
        if self.head is None or self.index is None:
            raise TypeError("there is no index")
        with computing(query):
            rows = as_numpy(self._rows(query))
            columns = self.index.candidates(rows)
            return columns, *candidate_scores(self.head, rows, columns)

    def _rows(self, query: Array) -> Array:
        """Vectors [L, d] as the adaptive head compares them."""
        if self.head is None:
            raise TypeError("the adaptive head is not fitted")
        xp = array_namespace(query)
        return self.head.view(xp.astype(query, xp.float32))

    def _part(self, query: Array, knowledge: Knowledge, keep_base: bool) -> Array:
        """The columns of each block put in their place, then the base classes."""
        xp, scorer, found = array_namespace(query), self.scorer, []
        if knowledge.classes:
            queries = scorer.query_side(query)
            blocks = (knowledge.whole,) if scorer.joint else knowledge.blocks
            sides = (block.side(scorer, knowledge.name_weight) for block in blocks)
            scores = xp.concat([scorer.score_sides(side, queries) for side in sides], axis=1)
            order = None if scorer.joint else knowledge.order
            found.append((scores if order is None else take(scores, order, axis=1)) / scorer.temperature)
        if keep_base and scorer.keeps_base:
            offset = self.calibration.offset(knowledge.mean_size) if self.calibration else 0.0
            found.append(scorer.base_scores(query) / scorer.temperature + offset)
        return xp.concat(found, axis=1)

    def shares(self, entry: ClassSupport, query: Array, name_weight: float) -> tuple[NDArray[Any], list[float]]:
        """Each row's exact part [K] of a class's cosine with one query [1, d], and the cosine without that row."""
        with computing(query):
            found = self.scorer.shares(entry.prepared[None, ...], query, entry.weights(name_weight)[None, ...])
            without = [self.without(entry, row, query, name_weight) for row in range(len(entry.texts))]
        if found is None:
            return np.full(len(entry.texts), np.nan), without
        return as_numpy(found[0, 0, :]) / self.scorer.temperature, without

    def head_shares(self, column: int, query: Array) -> tuple[NDArray[np.float64], float, list[float]]:
        """Of the adaptive head: every row's exact part [n] of a class's score, what else has a part, and the score without
        each of the class's own rows.
        """
        if self.head is None:
            raise TypeError("the adaptive head is not fitted")
        asked, size = self._rows(query)[0, :], self.head.sizes[column]
        without = [self.head.without(asked, column, row)[1] if size > 1 else float("nan") for row in range(size)]
        return *self.head.shares(asked, column), without

    def without(self, entry: ClassSupport, row: int, query: Array, name_weight: float, column: int = 0) -> float:
        """The cosine of a class with one query [1, d] if one of its rows were not there; NaN if it is the only one.

        The adaptive head needs the class's column too.
        """
        rest = [index for index in range(len(entry.texts)) if index != row]
        if not rest:
            return float("nan")
        with computing(query):
            if self.head is not None:
                return self.head.without(self._rows(query)[0, :], column, row)[0]
            weights = take(entry.weights(name_weight), rest)[None, ...]
            side = self.scorer.support_side(take(entry.prepared, rest)[None, ...], None, weights)
            score = self.scorer.score_sides(side, self.scorer.query_side(query))
            return float(score[0, 0]) / self.scorer.temperature

    def memory_of(self, entry: ClassSupport, most: int = 5) -> tuple[tuple[str, float], ...]:
        """The base classes that shaped a class's vectors most, with their weight; nothing where no memory is read."""
        weights = self.scorer.memory_weights(entry.vectors)
        if weights is None:
            return ()
        mean = as_numpy(weights).mean(axis=0)  # [N]
        order = np.argsort(-np.abs(mean), kind="stable")[:most]
        return tuple((self.base_classes[index], float(mean[index])) for index in order if abs(mean[index]) > 1e-6)


def check_finite(vectors: Any, who: str, texts: Sequence[str]) -> None:
    """Raise an error that names the first text whose vector holds NaN or infinity."""
    bad = ~np.isfinite(vectors)
    if bad.any():
        index = int(np.argwhere(bad)[0, 0])
        raise DataError(f"{who} a vector with NaN or infinity for text {index} ({texts[index]!r})")


def check_scores(scores: Array) -> Array:
    """The same scores, if all of them are finite; NaN would be answered as the first class."""
    bad = ~np.isfinite(as_numpy(scores))
    if bad.any():
        row = int(np.argwhere(bad)[0, 0])
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
        with needed_for("model='nearest' on its encoder 'minilm'", "with encoder='bge-small' it needs none"):
            opened = open_encoder("minilm", device=device, backend=backend)
        return Model(NearestPrototypes(), opened, on_torch=backend == "torch")
    if name in ("default", NAME):
        return _adaptive(_open_named("default", device, backend), on_torch=backend == "torch")
    with needed_for(f"the trained model {name!r}"):
        from dmin.classifier.trained import open_trained

        trained = open_trained(shipped_head() if name == SHIPPED else model, device, backend)
    info = trained.info
    calibration = Calibration.from_dict(info.calibration) if info.calibration else None
    own_classes = bool(info.trained_on.get("all_classes"))
    return Model(trained.method, trained.encoder, None, info.base_classes, calibration, own_classes)


def _on_encoder(model: str, encoder: Encode | str, device: str | None, backend: str) -> Model:
    """The adaptive head on a named encoder whose spread is stored; nearest prototypes on any other, unless asked for it."""
    if model not in ("default", NAME, "nearest"):
        raise ConfigError("a trained model brings its own encoder: leave out encoder, or use model='default'")
    opened, own, on_torch = None, None, backend == "torch"
    if isinstance(encoder, str) and encoder != PRECOMPUTED:
        opened = _open_named(encoder, device, backend)
    elif backend not in ("auto", "torch"):
        raise ConfigError(f"backend {backend!r} is for encoders that dmin loads; this one brings its own vectors")
    elif is_text_encoder(encoder):
        opened = encoder
    else:
        own = None if isinstance(encoder, str) else encoder
    known = opened is not None and knows_encoder(opened.name, opened.width)
    if model == NAME or (model == "default" and known):
        return _adaptive(opened, own, on_torch=on_torch)
    return Model(NearestPrototypes(), opened, own, on_torch=on_torch)


def _open_named(name: str, device: str | None, backend: str) -> TextEncoder:
    """An encoder by name. One that is never on torch takes backend="torch" too: then only the scores are computed there."""
    if is_frozen(name):
        return open_encoder(name, device=device, backend="auto" if backend == "torch" else backend)
    with needed_for(f"the encoder {name!r}"):
        return open_encoder(name, pooling="mean", device=device, backend=backend)


def _adaptive(encoder: TextEncoder | None, own: Encode | None = None, *, on_torch: bool = False) -> Model:
    setup = adaptive_setup(encoder.name if encoder else None, encoder.width if encoder else None)
    return Model(AdaptiveScorer(), encoder, own, calibration=setup.calibration, setup=setup, on_torch=on_torch)

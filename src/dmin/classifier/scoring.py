"""Encoder and method of a classifier: texts to vectors, vectors to cosines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

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
from dmin.model import load_model, shipped_head
from dmin.model.calibration import Calibration
from dmin.threads import one_thread

QUERY_BLOCK = 128  # queries scored at once; with `knowledge.BLOCK_ROWS` it bounds the memory of a prediction
FEW_SCORES = 4096  # queries times classes: up to here one thread is as fast as two
PLAIN_SCALE = 20.0  # of probabilities where nothing was calibrated

Encode = Callable[[Sequence[str]], Any]


@dataclass(frozen=True)
class Model:
    """An encoder (or the user's own in its place), a method, and the calibration of its cosines."""

    method: FewShotMethod
    encoder: TextEncoder | None  # None: `own` makes the vectors, or they are given
    own: Encode | None = None
    base_classes: tuple[str, ...] = ()
    calibration: Calibration | None = None
    own_classes: bool = False  # trained with all_classes: its base classes are answered, with or without others

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
        columns = len(knowledge.classes) + (len(self.base_classes) if keep_base else 0)
        scores = query.new_empty(len(query), columns)
        with one_thread(query.device.type == "cpu" and len(query) * columns <= FEW_SCORES):
            for at in range(0, len(query), QUERY_BLOCK):
                scores[at : at + QUERY_BLOCK] = self._part(query[at : at + QUERY_BLOCK], knowledge, keep_base)
        return check_scores(scores.float())

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
    def without(self, entry: ClassSupport, row: int, query: Tensor, name_weight: float) -> float:
        """The cosine of a class with one query [1, d] if one of its rows were not there; NaN if it is the only one."""
        rest = [index for index in range(len(entry.texts)) if index != row]
        if not rest:
            return float("nan")
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
    """The model of a name: "default" (shipped), "nearest", the folder of a run or model, or a hub id."""
    if encoder is not None:
        return _plain_model(model, encoder, device, backend)
    if (Path(model) / "classifier.json").is_file():
        raise ConfigError(f"{str(model)!r} is a saved classifier, not a model: FewShotClassifier.load({str(model)!r})")
    if str(model) == "nearest":
        return Model(_nearest(), open_encoder("minilm", device=device, backend=backend))
    trained = load_model(shipped_head() if str(model) == "default" else model, device=device, backend=backend)
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


def _plain_model(model: str | Path, encoder: Encode | str, device: str | None, backend: str) -> Model:
    """Nearest prototypes over an encoder of the user's choice."""
    if str(model) not in ("default", "nearest"):
        raise ConfigError("a trained model brings its own encoder: leave out encoder, or use model='default'")
    if isinstance(encoder, str) and encoder != PRECOMPUTED:
        pooling = "auto" if is_frozen(encoder) else "mean"
        return Model(_nearest(), open_encoder(encoder, pooling=pooling, device=device, backend=backend))
    if backend not in ("auto", "torch"):
        raise ConfigError(f"backend {backend!r} is for encoders that dmin loads; this one brings its own vectors")
    if is_text_encoder(encoder):
        return Model(_nearest(), encoder)
    return Model(_nearest(), None, None if isinstance(encoder, str) else encoder)


def _nearest() -> FewShotMethod:
    return create("nearest", 0, way=0, shot=0)

"""The first stage of encoder="cascade": a static encoder that answers the texts it is sure of.

The second stage is the default classifier, whose classes, settings and thresholds are the state's own. The first stage is a
head of the same kind on the vectors of the encoder "static", with the same rows. It answers a text where its best score
lies `sure` above the next one. How large that must be is found on held-out texts, at a fit by cross-validation over the
examples: the expected loss of accuracy against the second stage, plus one standard error, is at most `MOST_LOST`. Cosines
of the first stage are put on the scale of the second, quantile by quantile, so that one threshold of refusal fits both; a
text that would be refused always goes to the second stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dmin.adaptive import Head, fit_head
from dmin.adaptive.fit import class_slices
from dmin.adaptive.unlabelled import learn_labels, softmax
from dmin.classifier.arrays import as_numpy
from dmin.classifier.fitting import pack, places_before, unpack
from dmin.classifier.knowledge import ClassSupport, Knowledge
from dmin.classifier.scoring import Model
from dmin.encoder import FloatArray, TextEncoder, open_encoder
from dmin.errors import ModelError
from dmin.model.adaptive_head import AdaptiveSetup, adaptive_setup

CASCADE = "cascade"
FIRST = "static"  # the encoder of the first stage
MOST_LOST = 0.005  # of accuracy
UNSEEN = (
    0.25  # texts lost that the held-out ones do not show: with fewer than 50 of them the first stage answers nothing
)
FOLDS, ENOUGH = 5, 600  # of cross-validation; held-out examples that are enough
HELD_OUT = 4  # every fourth unlabelled text is not learned from, to find `sure` by
QUANTILES = np.linspace(0, 1, 41)


@dataclass(frozen=True, eq=False)
class FirstStage:
    """The static encoder, its head, and when it answers.

    Args:
        encoder: the static one.
        setup: of its head.
        head: its columns are the classes of the state, in their order; None while there is no class.
        sure: difference of its two best scores from which on it answers.
        own_quantiles: of its highest cosines on held-out texts.
        other_quantiles: of those of the second stage on the same texts.
        share: part of the held-out texts that it would have answered.
        lost: accuracy that it would have lost on them.
    """

    encoder: TextEncoder
    setup: AdaptiveSetup
    head: Head | None = None
    sure: float = np.inf
    own_quantiles: tuple[float, ...] = (-1.0, 1.0)
    other_quantiles: tuple[float, ...] = (-1.0, 1.0)
    share: float = 0.0
    lost: float = 0.0

    @classmethod
    def open(cls) -> Self:
        """Load the encoder; no class is known yet."""
        encoder = open_encoder(FIRST)
        return cls(encoder, adaptive_setup(encoder.name, encoder.width))

    @cached_property
    def made_by(self) -> str:
        """A digest of encoder and constants."""
        return f"{self.encoder.fingerprint[:16]}-{self.setup.digest}"

    # Answers

    def scored(self, texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """(cosines on the scale of the second stage, deciding scores) of texts, both [L, C]."""
        head = self._fitted()
        rows = head.view(self.encoder.encode(texts))  # [L, d]
        cosines = head.cosines(rows)
        return self.on_scale(cosines), head.scores(rows, cosines)

    def is_sure(self, cosines: FloatArray, scores: FloatArray, limits: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which texts it answers, [L]: sure of their class, and no reason to refuse them."""
        best = scores.argmax(axis=1)
        found: NDArray[np.bool_] = (margins(scores) >= self.sure) & (
            cosines[np.arange(len(best)), best] >= limits[best]
        )
        return found

    def on_scale(self, cosines: FloatArray) -> FloatArray:
        """Cosines as the second stage would have them."""
        own, other = (np.array(part) for part in (self.own_quantiles, self.other_quantiles))
        found = np.interp(cosines, own, other)
        found = np.where(
            cosines < own[0], other[0] + cosines - own[0], found
        )  # beyond the quantiles: the same distance
        found = np.where(cosines > own[-1], other[-1] + cosines - own[-1], found)
        scaled: FloatArray = np.clip(found, -1, 1).astype(np.float32)
        return scaled

    def shares(self, text: str, column: int) -> tuple[NDArray[np.float64], float, list[float]]:
        """Like `Model.head_shares`: every row's part [n] of a class's score, the rest, and the score without each row."""
        head = self._fitted()
        asked, size = head.view(self.encoder.encode([text]))[0], head.sizes[column]
        without = [head.without(asked, column, row)[1] if size > 1 else float("nan") for row in range(size)]
        return *head.shares(asked, column), without

    def _fitted(self) -> Head:
        if self.head is None:
            raise TypeError("the first stage is not fitted")
        return self.head

    # Changes

    def fitted(self, model: Model, knowledge: Knowledge, scale: float) -> FirstStage:
        """Fitted to these classes, and when it answers found by cross-validation over their examples.

        Args:
            model: of the second stage.
            knowledge: the classes with the vectors of the second stage.
            scale: of the second stage's probabilities.
        """
        entries = knowledge.classes
        if not entries:
            return replace(self, head=None, sure=np.inf)
        vectors = self.encoder.encode([text for entry in entries for text in entry.texts])  # [n, d]
        parts = class_slices([len(entry.texts) for entry in entries])
        own = [ClassVectors(entry, vectors[part]) for entry, part in zip(entries, parts, strict=True)]
        found = replace(self, head=_fit(self.setup, own))
        if len(entries) < 2 or model.setup is None:
            return found
        other = [ClassVectors(entry, as_numpy(entry.vectors).astype(np.float32)) for entry in entries]
        return found.calibrated(_held_out(self.setup, own), _held_out(model.setup, other), scale)

    def taught(self, teacher: FloatArray, cosines: FloatArray, texts: Sequence[str], scale: float) -> FirstStage:
        """After learning what the second stage answers to unlabelled texts, if more of the held-out ones are answered then.

        As it is where too few texts were given to find out when it is sure.

        Args:
            teacher: deciding scores of the second stage [m, C].
            cosines: its highest cosine of each text [m].
            texts: the texts.
            scale: of the second stage's probabilities.
        """
        head = self._fitted()
        vectors = self.encoder.encode(texts)  # [m, d]
        held = np.arange(len(texts)) % HELD_OUT == HELD_OUT - 1
        if head.dual is None or held.sum() * MOST_LOST < UNSEEN:
            return self
        student = replace(self, head=learn_labels(head, vectors[~held], softmax(scale * teacher[~held])))
        found = []
        for stage in (self, student):
            rows = stage._fitted().view(vectors[held])
            own = stage._fitted().cosines(rows)
            pair = (stage._fitted().scores(rows, own), own.max(axis=1))
            found.append(stage.calibrated(pair, (teacher[held], cosines[held]), scale))
        return max(reversed(found), key=lambda stage: stage.share)

    def calibrated(
        self, own: tuple[FloatArray, FloatArray], other: tuple[FloatArray, FloatArray], scale: float
    ) -> FirstStage:
        """With `sure` and the quantiles from held-out texts: (scores [m, C], highest cosines [m]) of both stages."""
        if not len(own[0]):
            return self
        loss = expected_loss(own[0], other[0], scale)
        sure, share, lost = find_sure(margins(own[0]), loss)
        quantiles = [np.maximum.accumulate(np.quantile(part[1], QUANTILES)) for part in (own, other)]
        first, second = (tuple(map(float, part)) for part in quantiles)
        return replace(self, sure=sure, share=share, lost=lost, own_quantiles=first, other_quantiles=second)

    def extended(self, before: Knowledge, changed: Sequence[ClassSupport]) -> FirstStage:
        """With these classes added or changed; no other class's score moves, and `sure` stays."""
        head = self._fitted()
        columns = {label: column for column, label in enumerate(before.labels)}
        for entry in changed:
            known = before.by_label.get(entry.label)
            if known is None:
                head = head.with_class(self.encoder.encode(entry.texts), entry.named)
            elif known.texts != entry.texts or known.named != entry.named:
                vectors = self.encoder.encode(entry.texts)
                head = head.with_rows(columns[entry.label], vectors, entry.named, places_before(known, entry))
        return replace(self, head=head)

    def without(self, column: int) -> FirstStage:
        """With one class less."""
        return replace(self, head=self._fitted().without_class(column))

    # Storage

    def packed(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """As (arrays, plain values); None while there is no class."""
        if self.head is None:
            return None
        arrays, values = pack(self.head)
        numbers = {name: getattr(self, name) for name in ("share", "lost", "made_by")}
        lists = {name: list(getattr(self, name)) for name in ("own_quantiles", "other_quantiles")}
        sure = None if np.isinf(self.sure) else self.sure  # (JSON has no infinity)
        return arrays, {"sure": sure, **numbers, **lists, "head": values}

    def unpacked(self, arrays: dict[str, Any], values: dict[str, Any]) -> FirstStage | None:
        """What `packed` gave; None where it was made by another encoder or with other constants."""
        if values["made_by"] != self.made_by:
            return None
        own, other = (tuple(map(float, values[name])) for name in ("own_quantiles", "other_quantiles"))
        if len(own) != len(other) or len(own) < 2 or not np.isfinite([*own, *other]).all():
            raise ModelError("the quantiles of its first stage do not fit each other")
        return replace(
            self, head=unpack(self.setup, arrays, values["head"]), sure=_number(values["sure"]), own_quantiles=own,
            other_quantiles=other, share=float(values["share"]), lost=float(values["lost"]),
        )  # fmt: skip


# Calibration


@dataclass(frozen=True, eq=False)
class ClassVectors:
    """One class: how many of its rows are examples, and its vectors [K, d] by one encoder."""

    entry: ClassSupport
    vectors: FloatArray

    def fold(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(rows that stay, rows that are held out); a class is never left without a row."""
        rows, examples = np.arange(len(self.vectors)), len(self.entry.examples)
        held = rows[(rows < examples) & (rows % FOLDS == number)]
        return (rows, rows[:0]) if len(held) == len(rows) else (np.setdiff1d(rows, held), held)


def _fit(setup: AdaptiveSetup, classes: Sequence[ClassVectors]) -> Head:
    vectors = np.concatenate([one.vectors for one in classes])  # [n, d]
    return fit_head(
        setup.recipe, setup.spreads_for(vectors.shape[1]), vectors, [len(one.vectors) for one in classes],
        [one.entry.named for one in classes],
    )  # fmt: skip


def _held_out(setup: AdaptiveSetup, classes: Sequence[ClassVectors]) -> tuple[FloatArray, FloatArray]:
    """(scores [m, C], highest cosines [m]) of held-out examples, by heads that were fitted without them."""
    scores, cosines, found = [], [], 0
    for number in range(FOLDS):
        folds = [one.fold(number) for one in classes]
        held = [one.vectors[rows] for one, (_, rows) in zip(classes, folds, strict=True)]
        queries = np.concatenate(held)  # [m, d]
        if not len(queries):
            continue
        head = _fit(
            setup, [replace(one, vectors=one.vectors[kept]) for one, (kept, _) in zip(classes, folds, strict=True)]
        )
        rows = head.view(queries)
        near = head.cosines(rows)
        scores.append(head.scores(rows, near))
        cosines.append(near.max(axis=1))
        found += len(queries)
        if found >= ENOUGH:
            break
    if not scores:
        return np.empty((0, len(classes)), np.float32), np.empty(0, np.float32)
    return np.concatenate(scores), np.concatenate(cosines)


def margins(scores: FloatArray) -> FloatArray:
    """Difference of the two best scores of each text, [L]; nothing where there is one class."""
    if scores.shape[1] < 2:
        return np.zeros(len(scores), np.float32)
    best = np.partition(scores, scores.shape[1] - 2, axis=1)[:, -2:]
    found: FloatArray = best[:, 1] - best[:, 0]
    return found


def expected_loss(own: FloatArray, other: FloatArray, scale: float) -> NDArray[np.float64]:
    """What each answer of the first stage costs [m]: probability of the second stage's answer minus that of its own.

    By the second stage's probabilities; no label is needed, and a difference of two labels that are both unlikely costs
    little.
    """
    probabilities = softmax(scale * other.astype(np.float64))  # [m, C]
    rows = np.arange(len(own))
    found: NDArray[np.float64] = probabilities.max(axis=1) - probabilities[rows, own.argmax(axis=1)]
    return found


def find_sure(margin: FloatArray, loss: NDArray[np.float64]) -> tuple[float, float, float]:
    """(margin from which on the first stage answers, part that it answers, expected loss).

    The loss of all texts with a larger margin, plus one standard error and `UNSEEN`, stays below `MOST_LOST` of all texts.
    """
    order = np.argsort(-margin, kind="stable")
    total = np.cumsum(loss[order])
    bound = (total + np.sqrt(np.cumsum(loss[order] ** 2)) + UNSEEN) / len(loss)
    over = np.flatnonzero(bound > MOST_LOST)
    count = int(over[0]) if len(over) else len(loss)
    if not count:
        return np.inf, 0.0, 0.0
    return float(margin[order[count - 1]]), count / len(loss), float(total[count - 1] / len(loss))


def _number(value: float | None) -> float:
    return np.inf if value is None else float(value)

"""What the page draws: an evaluation on labelled texts, and a map of texts in two dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dmin.evaluation.quality import quality
from dmin.server import schemas
from dmin.server.engine import Engine, Fitted

REFUSED = "(refused)"
_WRONG = 500  # wrong texts that are answered, at most
_BATCH = 256
_NEIGHBOURS = 5
_DOUBTS = 25  # marks on the map, the strongest doubts first: more would hide them


def evaluate(engine: Engine, fitted: Fitted, rows: Sequence[tuple[str, str]]) -> schemas.EvaluateAnswer:
    """Accuracy, per-class quality and confusion matrix on labelled texts; a refusal counts as wrong."""
    texts = [text for text, _ in rows]
    truth = [label for _, label in rows]
    answers: list[schemas.AnswerToText] = []
    for at in range(0, len(texts), _BATCH):
        answers += engine.classify(fitted, texts[at : at + _BATCH], 1)
    given = [answer.label if answer.label is not None else REFUSED for answer in answers]
    found = quality(truth, given)
    known = [str(label) for label in fitted.classifier.classes_.tolist()]
    labels = [label for label in known if label in set(truth) | set(given)]
    extra = sorted(set(truth) - set(known))
    columns = [*labels, REFUSED]
    low, high = wilson(round(found.accuracy * len(rows)), len(rows))
    wrong = [
        schemas.WrongText(
            text=text, truth=label, answer=answer.label, probability=answer.probability, refused=answer.refused
        )
        for text, label, answer in zip(texts, truth, answers, strict=True)
        if answer.label != label
    ]
    return schemas.EvaluateAnswer(
        revision=fitted.revision, texts=len(rows), accuracy=found.accuracy, low=low, high=high,
        macro_f1=found.macro_f1, refused=sum(answer.refused for answer in answers), unknown_labels=extra,
        classes=[
            schemas.ClassQuality(label=label, texts=one.texts, precision=one.precision, recall=one.recall, f1=one.f1)
            for label, one in found.classes.items()
        ],
        labels=[*labels, *extra],
        confusion=[[found.confusion[row, column] for column in columns] for row in [*labels, *extra]],
        wrong=sorted(wrong, key=lambda item: -item.probability)[:_WRONG],
    )  # fmt: skip


def wilson(right: int, texts: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's 95 % confidence interval of a proportion."""
    share = right / texts
    centre = share + z * z / (2 * texts)
    half = z * math.sqrt(share * (1 - share) / texts + z * z / (4 * texts * texts))
    return max(0.0, (centre - half) / (1 + z * z / texts)), min(1.0, (centre + half) / (1 + z * z / texts))


def draw_map(engine: Engine, fitted: Fitted, texts: Sequence[str]) -> schemas.MapAnswer:
    """All examples in two dimensions, texts beside their most similar examples, doubtful examples marked."""
    classifier = fitted.ready()
    pairs = [(text, str(label)) for label, group in classifier.examples_.items() for text in group]
    report = engine.check(fitted)
    doubts = {(doubt.text, str(doubt.label)): str(doubt.nearer) for doubt in report.doubtful[:_DOUBTS]}
    unit = _unit(engine.vectors([text for text, _ in pairs]))  # [n, d]
    places = _flatten(unit, [label for _, label in pairs])  # [n, 2]
    examples = [
        schemas.MapPoint(x=float(x), y=float(y), text=text, label=label, doubt=doubts.get((text, label)))
        for (text, label), (x, y) in zip(pairs, places, strict=True)
    ]
    found = []
    if texts:
        cosines = _unit(engine.vectors(texts)) @ unit.T  # [m, n]
        nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :_NEIGHBOURS]  # [m, k]
        weights = np.exp(10 * (np.take_along_axis(cosines, nearest, axis=1) - 1))  # [m, k]
        weights /= weights.sum(axis=1, keepdims=True)
        spots = (weights[:, :, None] * places[nearest]).sum(axis=1)  # [m, 2]
        found = [
            schemas.MapPoint(x=float(x), y=float(y), text=text, label=None)
            for text, (x, y) in zip(texts, spots, strict=True)
        ]
    pairs_of_classes = [(str(one), str(two), count) for one, two, count in report.overlapping]
    return schemas.MapAnswer(revision=fitted.revision, examples=examples, texts=found, overlapping=pairs_of_classes)


def _unit(vectors: Any) -> Any:
    """Rows of norm 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _flatten(unit: Any, labels: Sequence[str]) -> Any:
    """Two dimensions by t-SNE, pulled a little towards each class's middle; a fixed seed, so that it does not jump."""
    count = len(unit)
    if count < 5:
        angles = 2 * np.pi * np.arange(count) / max(1, count)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    from sklearn.manifold import TSNE

    order = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    groups = np.array([order[label] for label in labels])
    means = np.stack([unit[groups == number].mean(axis=0) for number in order.values()])  # [C, d]
    pulled = _unit(unit + 0.5 * means[groups])
    flat = TSNE(
        perplexity=min(30, (count - 1) / 3), init="pca", random_state=0, max_iter=400, metric="euclidean"
    ).fit_transform(pulled - pulled.mean(axis=0))
    flat = flat - flat.mean(axis=0)
    return flat / max(1e-9, float(np.abs(flat).max()))

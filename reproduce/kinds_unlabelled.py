"""Unlabelled texts: what `adapt` changes, beside logistic regression given the same graph, and what a large pile costs."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from dmin import FewShotClassifier
from dmin.adaptive import unlabelled as learning
from dmin.adaptive.unlabelled import CLASS_WEIGHT, TEXT_WEIGHT, soft_labels, softmax
from reproduce.kinds import accuracy, classifier_for, examples_of, vectors_of
from reproduce.kinds_constants import spread_without
from reproduce.kinds_data import SHOTS, KindSet, Vectors, generator
from reproduce.kinds_lines import restart, write

PILES = ("even", "uneven", "unknown")
MANY = 50  # classes from which on one draw is made in place of two: a fit takes ten times as long
C = 10.0  # of the logistic regression, as in all tables


@dataclass(frozen=True)
class Graphed:
    """Answers of logistic regression, as columns: before and after unlabelled texts."""

    of_pile_before: Any  # [m]
    of_new_before: Any  # [L]
    of_pile: Any  # [m], the answers of the graph itself
    of_new: Any  # [L], fitted to examples and the graph's labels


def rows_of(vectors: Vectors, examples: dict[Any, list[str]], names: Sequence[str]) -> tuple[Any, Any]:
    """Rows of norm 1 [n, d] and their columns [n]; with names, a name is one more row."""
    rows, labels = [], []
    for column, texts in enumerate(examples.values()):
        given = [*texts, *([names[column]] if names else [])]
        rows.append(vectors(given))
        labels += [column] * len(given)
    return unit(np.concatenate(rows)), np.array(labels)


def unit(vectors: Any) -> Any:
    """Vectors of norm 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def logistic_with_graph(rows: Any, labels: Any, pile: Any, asked: Any) -> Graphed:
    """Logistic regression on an encoder's vectors with the neighbour graph of `dmin.adaptive.unlabelled` over the same.

    Args:
        rows: of norm 1 [n, d].
        labels: their columns [n].
        pile: vectors of unlabelled texts [m, d].
        asked: vectors of new texts [L, d].
    """
    pile, asked = unit(pile), unit(asked)
    target = np.eye(int(labels.max()) + 1, dtype=np.float32)[labels]  # [n, C]
    plain = logistic_weights(rows, target, np.ones(len(rows), np.float32))  # [C, d]
    probabilities = softmax(pile @ plain.T)  # [m, C]
    spread = soft_labels(rows, target, pile, probabilities)
    weight = min(TEXT_WEIGHT, CLASS_WEIGHT * target.shape[1] / len(pile))
    weights = np.concatenate([np.ones(len(rows)), np.full(len(pile), weight)]).astype(np.float32)
    learned = logistic_weights(np.concatenate([rows, pile]), np.concatenate([target, spread]), weights)  # [C, d]
    return Graphed(
        probabilities.argmax(axis=1), (asked @ plain.T).argmax(axis=1), spread.argmax(axis=1),
        (asked @ learned.T).argmax(axis=1),
    )  # fmt: skip


def logistic_weights(rows: Any, target: Any, weights: Any) -> Any:
    """Weights W [C, d] of logistic regression (C=10, no intercept) with probabilities as targets [n, C]."""
    shape = (target.shape[1], rows.shape[1])

    def value(flat: Any) -> tuple[float, Any]:
        W = flat.reshape(shape).astype(np.float32)
        logits = rows @ W.T  # [n, C]
        logits -= logits.max(axis=1, keepdims=True)
        total = np.exp(logits).sum(axis=1, keepdims=True)
        loss = float((weights[:, None] * (np.log(total) - (target * logits).sum(axis=1, keepdims=True))).sum())
        gradient = (weights[:, None] * (np.exp(logits) / total - target)).T @ rows  # [C, d]
        return C * loss + 0.5 * float(flat @ flat), (C * gradient).ravel().astype(np.float64) + flat

    found = minimize(value, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    return found.x.reshape(shape).astype(np.float32)


def unlabelled(encoder: str, names: Sequence[str]) -> None:
    """Accuracy before and after unlabelled texts: of the texts of the pile, and of new texts."""
    vectors = vectors_of(encoder)
    restart("unlabelled", names)
    for name in names:
        found = KindSet(name)
        classifier = classifier_for(vectors, spread_without(vectors, name), None)
        for kind in PILES:
            for shot in SHOTS:
                for number in (10, 11) if len(found.classes) < MANY else (10,):
                    _unlabelled_tasks(
                        classifier, vectors, found, {"set": name, "pile": kind, "shot": shot, "draw": number}
                    )
        print(name, flush=True)


def _unlabelled_tasks(classifier: FewShotClassifier, vectors: Vectors, found: KindSet, key: dict[str, Any]) -> None:
    rows, known = found.draw(key["shot"], key["draw"]), np.arange(len(found.classes))
    if key["pile"] == "unknown":  # 30 % of the pile belongs to no class
        known = np.sort(generator(found.name, "unknown", key["draw"]).permutation(known)[: round(0.7 * len(known))])
    place = {int(column): at for at, column in enumerate(known)}
    asked = [(text, place[int(label)]) for text, label in zip(*found.fresh, strict=True) if int(label) in place]
    new, truth = [text for text, _ in asked], np.array([label for _, label in asked])
    for named in (False, True):
        classifier.use_names = named
        every = list(examples_of(found, rows, named=named).items())
        examples = dict(every[column] for column in known)
        titles = [found.names[column] for column in known] if named else ()
        for per in (10, 40):
            texts, owners = _pile(found, rows, per, key["pile"], key["draw"])
            mine = [at for at, owner in enumerate(owners) if owner in place]
            own = [texts[at] for at in mine], np.array([place[owners[at]] for at in mine])
            classifier.fit(examples)
            before = [accuracy(classifier, *own), accuracy(classifier, new, truth)]
            classifier.adapt(texts)
            after = [accuracy(classifier, *own), accuracy(classifier, new, truth)]
            beside = logistic_with_graph(*rows_of(vectors, examples, titles), vectors(texts), vectors(new))
            logistic = [right(beside.of_pile_before[mine], own[1]), right(beside.of_new_before, truth)]
            graph = [right(beside.of_pile[mine], own[1]), right(beside.of_new, truth)]
            found_now = {"before": before, "after": after, "logistic": logistic, "graph": graph}
            write("unlabelled", {**key, "names": named, "per": per, **found_now})


def right(answers: Any, truth: Any) -> float:
    """Accuracy in %."""
    return 100 * float((answers == truth).mean())


def _pile(found: KindSet, rows: Any, per: int, kind: str, number: int) -> tuple[list[str], list[int]]:
    texts, owners = [], []
    for column, pool in enumerate(found.pool):
        rest = generator(found.name, "unlabelled", number, column).permutation(np.setdiff1d(pool, rows[column]))
        size = max(1, (per, per // 4, per // 16)[column % 3]) if kind == "uneven" else per
        texts += [found.texts[row] for row in rest[:size]]
        owners += [column] * len(rest[:size])
    return texts, owners


# Large piles


class Drawn:
    """An encoder of made texts "n": vectors near those of banking77, and of its real texts."""

    def __init__(self, vectors: Vectors, found: KindSet, size: int) -> None:
        self._vectors = vectors
        random = generator("pile", size)
        known = vectors(found.texts)
        at, other = random.integers(len(known), size=(2, size))
        mixed = 0.8 * known[at] + 0.2 * known[other]  # [size, d]
        self._made = unit(mixed + 0.02 * random.standard_normal(mixed.shape).astype(np.float32)).astype(np.float32)

    def __call__(self, texts: Sequence[str]) -> Any:
        """Vectors [n, d]."""
        if texts and all(text.startswith("#") for text in texts):
            return self._made[[int(text[1:]) for text in texts]]
        return self._vectors(texts)


def pile(encoder: str) -> None:
    """Seconds and peak memory of `adapt` with 100,000 texts, and the accuracy with samples of a real pile."""
    vectors, found = vectors_of(encoder), KindSet("banking77")
    spread = spread_without(vectors, found.name)
    new, truth = found.fresh
    drawn = found.draw(5, 10)
    examples = examples_of(found, drawn, named=True)
    restart("samples", ["banking77"])
    rest = np.setdiff1d(np.arange(len(found.texts)), drawn.ravel())
    classifier = classifier_for(vectors, spread, None, use_names=True).fit(examples)
    write("samples", {"set": "banking77", "texts": 0, "accuracy": accuracy(classifier, new, truth)})
    for size in (300, 1000, 3000, len(rest)):
        values = []
        for number in range(1 if size == len(rest) else 3):
            chosen = generator("sample", size, number).permutation(rest)[:size]
            values.append(accuracy(classifier.adapt([found.texts[row] for row in chosen]), new, truth))
        write("samples", {"set": "banking77", "texts": size, "accuracy": float(np.mean(values))})
    _time_pile(vectors, found, examples, spread)


def _time_pile(vectors: Vectors, found: KindSet, examples: dict[Any, list[str]], spread: Any) -> None:
    restart("pile", ["banking77"])
    made: Any = Drawn(vectors, found, 100_000)
    classifier = classifier_for(made, spread, None, use_names=True).fit(examples)
    texts = [f"#{number}" for number in range(100_000)]
    for size in (1000, 10_000, 20_000, 100_000):
        tracemalloc.start()
        started = time.perf_counter()
        classifier.adapt(texts[:size])
        line = {"set": "banking77", "texts": size, "learned_from": min(size, learning.MOST_TEXTS)}
        line |= {"seconds": time.perf_counter() - started, "megabytes": tracemalloc.get_traced_memory()[1] / 1e6}
        tracemalloc.stop()
        write("pile", line)
        print(line, flush=True)

"""Which rows of a pile to label next: greedy facility location, weighted by the classifier's uncertainty.

A labelled text covers its neighbours: the similarity of two texts is the cosine of their centred vectors, cut at zero and
raised to a power. The texts chosen are those that together raise the coverage of the pile most,

    sum over texts i of  w_i · max over chosen and labelled j of  sim(i, j),

by the greedy rule, which is within 1 - 1/e of the best choice (Nemhauser, Wolsey, Fisher 1978). With no classes every
weight is 1: typical texts of large uncovered regions come first. With classes w_i is how unsure a classifier is about text
i, so that a region that is settled counts for little, and a region unlike all that is labelled counts in full (it is
uncertain and uncovered). The weighting follows CLUE (Prabhu et al. 2021), which does the same with k-means.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from dmin.labelling.vectors import FloatArray

SAMPLE = 5000  # rows that are compared with each other at once: 100 MB
NEAR_DUPLICATE = 0.97  # cosine above which two texts are taken for the same
# Chosen by leave-one-set-out on nine data sets (reproduce/LABELLING.md); the result hardly depends on them.
POWER = 2.0  # of the cosine: higher looks at nearer neighbours only
MEASURE, EXPONENT = "least", 2.0  # of the uncertainty
LEAST_WEIGHT = 1e-3  # of a text the classifier is sure about
INVERSE_REGULARISATION = 10.0  # C of the logistic regression
_BLOCK = 4096


@dataclass(frozen=True)
class Choice:
    """The rows chosen, best first, and what each stands for."""

    rows: tuple[int, ...]
    stands_for: tuple[int, ...]  # rows of the pile that are nearest to this one among all chosen and labelled


def choose_rows(
    vectors: FloatArray,
    count: int,
    *,
    known: FloatArray | None = None,
    weights: Any = None,
    taken: Sequence[int] = (),
    seed: int = 0,
    power: float = POWER,
) -> Choice:
    """Choose `count` rows of a pile.

    Args:
        vectors: the pile, centred and of norm 1, [n, d].
        count: rows wanted; fewer come back where no more differ from each other.
        known: vectors of what is labelled, [m, d].
        weights: how much each row matters, [n]; equal without it.
        taken: rows that may not be chosen (labelled or skipped); `known` says what they cover.
        seed: of the sample, where the pile has more than `SAMPLE` rows.
        power: of the cosine.
    """
    total = len(vectors)
    weight = np.ones(total) if weights is None else np.maximum(np.asarray(weights, float), LEAST_WEIGHT)  # [n]
    free = np.ones(total, bool)  # [n]
    free[list(taken)] = False
    rows, weight = _sample(weight, free, seed)  # [s], [s]
    part = vectors[rows]  # [s, d]
    covered = highest_cosine(part, known)  # [s]
    similarity = np.maximum(part @ part.T, 0) ** power  # [s, s]
    candidate = free[rows] & (covered <= NEAR_DUPLICATE)  # [s]
    places = _greedy(similarity, np.maximum(covered, 0) ** power, weight, candidate, count, NEAR_DUPLICATE**power)
    chosen = rows[places]
    return Choice(tuple(int(row) for row in chosen), _stands_for(vectors, vectors[chosen], known))


def highest_cosine(vectors: FloatArray, known: FloatArray | None) -> Any:
    """The cosine of each row with the nearest known vector, [n]; 0 where nothing is known."""
    if known is None or not len(known) or not len(vectors):
        return np.zeros(len(vectors), np.float32)
    blocks = (vectors[start : start + _BLOCK] @ known.T for start in range(0, len(vectors), _BLOCK))  # [block, m]
    return np.concatenate([block.max(axis=1) for block in blocks])


def uncertainty(
    vectors: FloatArray,
    known: FloatArray,
    labels: Sequence[Any],
    *,
    measure: str = MEASURE,
    exponent: float = EXPONENT,
) -> Any:
    """How unsure logistic regression on what is labelled is about each row, [n]: from 0, sure, to 1.

    It works on the vectors at hand, so that the pile is not encoded again after each answer.

    Args:
        vectors: the pile, [n, d].
        known: vectors of what is labelled, [m, d].
        labels: their labels.
        measure: "least" (1 - the highest probability) or "margin" (1 - the difference of the two highest).
        exponent: the power that the result is raised to.
    """
    if len(set(labels)) < 2:
        return np.ones(len(vectors))
    second, first = _two_highest(vectors, known, labels)
    return np.clip(1 - first + (second if measure == "margin" else 0), 0, 1) ** exponent


def confidence(vectors: FloatArray, known: FloatArray, labels: Sequence[Any]) -> Any:
    """The highest probability that the same logistic regression gives each row, [n]."""
    return 1 - uncertainty(vectors, known, labels, measure="least", exponent=1.0)


def neighbour_agreement(vectors: FloatArray, answers: Any) -> float:
    """How often a text and its nearest neighbour are answered with one class, corrected for chance.

    1 where they always are, 0 where they are as often as two texts drawn at random. It is high where classes follow what
    the encoder sees, and needs no label of these texts.

    Args:
        vectors: some texts without a label, [n, d]; each is compared with each.
        answers: the number of the class that a classifier gives each, [n].
    """
    if len(vectors) < 2:
        return 0.0
    cosines = vectors @ vectors.T  # [n, n]
    np.fill_diagonal(cosines, -np.inf)
    same = float((answers == answers[cosines.argmax(axis=1)]).mean())
    chance = float(((np.bincount(answers) / len(answers)) ** 2).sum())
    return (same - chance) / (1 - chance) if chance < 1 else 0.0


def _two_highest(vectors: FloatArray, known: FloatArray, labels: Sequence[Any]) -> Any:
    """The second highest and the highest probability of each row, [2, n]."""
    from sklearn.linear_model import LogisticRegression

    names = sorted(set(labels), key=str)
    model = LogisticRegression(C=INVERSE_REGULARISATION, max_iter=100, tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn takes many classes of one text for a regression
        model.fit(known, [names.index(label) for label in labels])
    blocks = (model.predict_proba(vectors[start : start + _BLOCK]) for start in range(0, len(vectors), _BLOCK))
    found = [np.sort(block, axis=1)[:, -2:] for block in blocks]  # [block, 2]
    return np.concatenate(found).T if found else np.empty((2, 0))


def _sample(weight: Any, free: Any, seed: int) -> tuple[Any, Any]:
    """All rows with their weights, or `SAMPLE` rows drawn by weight, each weighted up by how unlikely it was drawn."""
    if len(weight) <= SAMPLE:
        return np.arange(len(weight)), weight
    generator = np.random.default_rng(seed)
    rate = np.where(free, weight, LEAST_WEIGHT)
    # The first arrivals of exponential times, each at the row's rate: a weighted sample without replacement.
    times = generator.exponential(size=len(weight)) / rate
    rows = np.sort(np.argpartition(times, SAMPLE)[:SAMPLE])
    drawn = 1 - np.exp(-rate[rows] * times[rows].max())  # the probability that a row is among them
    return rows, weight[rows] / np.maximum(drawn, 1e-9)


def _greedy(similarity: Any, covered: Any, weight: Any, candidate: Any, count: int, same: float) -> list[int]:
    """The greedy choice with lazy evaluation: a gain never grows, so an old gain is an upper bound of the new one."""
    weight, covered = weight.astype(np.float32), covered.astype(np.float32)
    blocks = (similarity[start : start + _BLOCK] for start in range(0, len(similarity), _BLOCK))
    gains = np.concatenate([np.maximum(block - covered, 0) @ weight for block in blocks])  # [s]
    heap = [(-float(gain), place) for place, gain in enumerate(gains) if candidate[place]]
    heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < count:
        _, place = heappop(heap)
        if chosen and similarity[place, chosen].max() > same:
            continue  # a near-duplicate of one that is chosen
        gain = float(np.maximum(similarity[place] - covered, 0) @ weight)
        if heap and -heap[0][0] > gain + 1e-9:
            heappush(heap, (-gain, place))
            continue
        chosen.append(place)
        covered = np.maximum(covered, similarity[place])
    return chosen


def _stands_for(vectors: FloatArray, chosen: FloatArray, known: FloatArray | None) -> tuple[int, ...]:
    """For each chosen vector, the rows of the pile to which it is nearer than all others chosen or known."""
    counts = np.zeros(len(chosen), int)
    if not len(chosen):
        return ()
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        cosines = block @ chosen.T  # [block, chosen]
        nearest = cosines.argmax(axis=1)
        mine = (
            (cosines.max(axis=1) >= highest_cosine(block, known)) if known is not None and len(known) else slice(None)
        )
        counts += np.bincount(nearest[mine], minlength=len(chosen))
    return tuple(int(count) for count in counts)

"""Learning from unlabelled texts: a neighbour graph gives them soft labels, which the head learns from in two ways.

Nodes are the rows of all classes and the unlabelled texts. Rows start from their classes, texts from the head's own
probabilities; each takes over part of what its neighbours have. Then the logistic part is fitted to rows and texts
together, and the texts stay as voters on the classes of what is asked (`voters.py`).

Unusual: on a new text, classes that found many texts vote the less, because a pile is seldom even and says little about how
even the texts are that will be asked; where most texts fell to few classes, nobody votes on new texts. Texts of the pile
itself are as uneven as the pile, so the less even it is, the less their own votes are evened. And where neighbours do not
agree (texts of one topic and many moods, say), votes count less or nothing: what the head thinks of a text is compared with
what it thinks of its neighbours, without any label.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dmin.adaptive.graph import Graph, neighbour_graph
from dmin.adaptive.head import Head
from dmin.adaptive.logistic import fit_logistic, one_hot, primal_of
from dmin.adaptive.namespace import array_namespace, device
from dmin.adaptive.spread import Array
from dmin.adaptive.voters import Voters

NEIGHBOURS, TAKEN, ROUNDS = 7, 0.8, 40
TEXT_WEIGHT = 0.2  # what an unlabelled text counts beside an example
CLASS_WEIGHT = 8.0  # what all of them count together at most, per class
VOTE, OWN_VOTE = 12.0, 24.0  # weight of the votes in the score of a new text, and of a text of the pile
EVENING = 0.85  # how far classes of many texts are held back
LEAST = 0.4  # of the mean number of texts of a class: with fewer, a class is not helped further
AGREEMENT = (0.6, 0.9)  # of neighbours, at which votes count nothing, and all
COVERAGE = (0.4, 0.8)  # of the classes by the pile, at which votes on new texts count nothing, and all
OWN_COVERAGE = (0.8, 0.95)  # likewise, at which votes of texts on themselves are not evened, and wholly
MOST_TEXTS = 20_000  # more are not needed, and the graph compares each with each
_SCALED_BY = 2_000  # texts that the scale is found on


def learn_unlabelled(head: Head, vectors: Array) -> Head:
    """The head after learning from unlabelled texts; class vectors and cosines stay.

    Args:
        head: fitted to its examples.
        vectors: of the unlabelled texts, by the encoder [m, D]; arrays of the same library as the head's.
    """
    if head.dual is None or not len(vectors):
        return head
    texts, targets = head.view(vectors), np.asarray(_targets(head))  # [m, D], [n, C]
    before = np.asarray(head.scores(texts))  # [m, C]
    start = np.concatenate([targets, softmax(before)]).astype(np.float32)  # [N, C]
    graph = neighbour_graph(np.concatenate([np.asarray(head.rows), np.asarray(texts)]), NEIGHBOURS)
    found = spread_labels(graph, start)  # [N, C]
    labels = found[len(targets) :]
    learned = _fit_texts(head, texts, labels, min(TEXT_WEIGHT, CLASS_WEIGHT * len(head.sizes) / len(texts)))
    agreed = between(agreement(graph, start, len(targets)), *AGREEMENT)
    if not agreed:
        return learned
    covered, mass = coverage(labels), labels.sum(axis=0)  # [C]
    of_new = VOTE * agreed * between(covered, *COVERAGE) * evened(mass, EVENING)
    of_own = OWN_VOTE * agreed * evened(mass, EVENING * between(covered, *OWN_COVERAGE))
    return _with_voters(learned, texts, found, of_new, of_own)


def _with_voters(head: Head, texts: Array, labels: Any, of_new: Any, of_own: Any) -> Head:
    """The head with its rows and texts [m, D] as voters, on scales at which it is as sure as without them.

    Args:
        head: that learned from the texts.
        texts: [m, D].
        labels: of rows and texts [N, C].
        of_new: weights of the classes in votes on new texts [C].
        of_own: and on texts of the pile [C].
    """
    xp, where = array_namespace(head.rows), device(head.rows)
    rows = xp.concat([head.rows, texts], axis=0)  # [N, D]
    scores = np.asarray(head.scores(rows), dtype=np.float64)  # [N, C]
    top = scores.max(axis=1)
    level = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    parts = (np.ascontiguousarray(labels.T), of_new, of_own, level)
    voters = Voters(rows, *(xp.asarray(part.astype(np.float32), device=where) for part in parts))
    some = np.arange(0, len(texts), -(-len(texts) // _SCALED_BY))  # [s]
    places = len(head.rows) + some
    before = scores[places]  # [s, C]
    sure = float(softmax(before).max(axis=1).mean())
    votes = (voters.of_others(places), voters.own(xp.asarray(places, device=where)))
    scale, own_scale = (scale_of(before + np.asarray(vote), sure) for vote in votes)
    return replace(head, voters=replace(voters, scale=scale, own_scale=own_scale))


def evened(mass: Any, power: float) -> Any:
    """Factors [C]: less for classes that have many of the texts [C]."""
    return np.maximum(mass / mass.mean(), LEAST) ** -power


def coverage(labels: Any) -> float:
    """The part of the classes that the texts' labels [m, C] are about: 1 where they are even, 1/C where all have one."""
    mass = labels.sum(axis=0)  # [C]
    return float(mass.sum() ** 2 / (len(mass) * (mass**2).sum()))


def agreement(graph: Graph, start: Any, rows: int) -> float:
    """How far neighbours of the texts are of one opinion: 1 where they think as the texts themselves do.

    Args:
        graph: of rows and texts.
        start: what each begins with [N, C].
        rows: how many of them are rows of classes, which come first.
    """
    around, own = graph.times(start)[rows:], start[rows:]
    around = around / around.sum(axis=1, keepdims=True)
    return float((around * own).sum() / (own * own).sum())


def between(value: float, none: float, full: float) -> float:
    """How far a value lies between two others, from 0 to 1."""
    return float(np.clip((value - none) / (full - none), 0, 1))


def scale_of(scores: Any, sure: float) -> float:
    """The factor of scores [m, C] at which the mean of the highest probabilities is `sure`, between 1/16 and 1."""
    low, high = 1 / 16, 1.0
    for _ in range(20):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if softmax(middle * scores).max(axis=1).mean() > sure else (middle, high)
    return float((low * high) ** 0.5)


def learn_labels(head: Head, vectors: Array, labels: Any) -> Head:
    """The head with its logistic part fitted to examples and to texts that a better classifier gave probabilities.

    Args:
        head: fitted to its examples.
        vectors: of the texts [m, D].
        labels: their probabilities [m, C], which count as much as those of examples.
    """
    if head.dual is None or not len(vectors):
        return head
    return _fit_texts(head, head.view(vectors), labels.astype(np.float32), 1.0)


def _fit_texts(head: Head, texts: Array, labels: Any, weight: float) -> Head:
    """The logistic part fitted to rows and to texts [m, D] with soft labels [m, C] of one weight."""
    xp, where = array_namespace(head.rows), device(head.rows)
    nodes = xp.concat([head.rows, texts], axis=0)
    weights = xp.concat([head.weights, xp.asarray(np.full(len(texts), weight, np.float32), device=where)])
    wanted = xp.concat([_targets(head), xp.asarray(labels, device=where)], axis=0)
    dual = fit_logistic(nodes, wanted, weights, head.recipe.regularisation)
    return replace(head, dual=dual[: head.rows.shape[0], :], primal=primal_of(dual, nodes))


def soft_labels(rows: Any, targets: Any, texts: Any, probabilities: Any) -> Any:
    """Probabilities [m, C] of unlabelled texts [m, D] after their neighbours had their say.

    Args:
        rows: of the classes [n, D].
        targets: their classes, one-hot [n, C].
        texts: [m, D].
        probabilities: what is thought of the texts before [m, C].
    """
    start = np.concatenate([targets, probabilities]).astype(np.float32)
    return spread_labels(neighbour_graph(np.concatenate([rows, texts]), NEIGHBOURS), start)[len(rows) :]


def spread_labels(graph: Graph, start: Any) -> Any:
    """Labels [N, C], adding up to 1, after each node has taken over part of what its neighbours have."""
    found = start
    for _ in range(ROUNDS):
        before, found = found, start + TAKEN * graph.times(found)
        if np.array_equal(before, found):
            break  # further rounds would change nothing
    return found / found.sum(axis=1, keepdims=True)


def softmax(scores: Any) -> Any:
    """Probabilities [L, C]."""
    exponent = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponent / exponent.sum(axis=1, keepdims=True)


def _targets(head: Head) -> Any:
    return one_hot(np.repeat(np.arange(len(head.sizes)), head.sizes), len(head.sizes), head.rows)

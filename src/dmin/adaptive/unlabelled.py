"""Learning from unlabelled texts: a neighbour graph gives them soft labels, which the logistic part learns from.

Nodes are the rows of all classes and the unlabelled texts. Rows start from their classes, texts from the head's own
probabilities; each takes over part of what its neighbours have. Then the logistic part is fitted to rows and texts
together, so that new texts gain as well and nothing of the graph has to be kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmin.adaptive.head import Head, one_hot, primal_of
from dmin.adaptive.logistic import fit_logistic
from dmin.adaptive.namespace import array_namespace, device
from dmin.adaptive.spread import Array

NEIGHBOURS, NEARNESS, TAKEN, ROUNDS = 10, 10.0, 0.5, 40
TEXT_WEIGHT = 0.2  # what an unlabelled text counts beside an example
CLASS_WEIGHT = 8.0  # what all of them count together at most, per class
MOST_TEXTS = 20_000  # more are not needed, and the graph compares each with each
_BLOCK = 1024
_CACHED = 1 << 16  # products that are summed at once


def learn_unlabelled(head: Head, vectors: Array) -> Head:
    """The head with its logistic part fitted to examples and unlabelled texts; class vectors and cosines stay.

    Args:
        head: fitted to its examples.
        vectors: of the unlabelled texts, by the encoder [m, D]; arrays of the same library as the head's.
    """
    if head.dual is None or not len(vectors):
        return head
    texts, targets = head.view(vectors), _targets(head)  # [m, D], [n, C]
    scores = softmax(np.asarray(head.scores(texts)))  # [m, C]
    labels = soft_labels(np.asarray(head.rows), np.asarray(targets), np.asarray(texts), scores)  # [m, C]
    return _fit_texts(head, texts, labels, min(TEXT_WEIGHT, CLASS_WEIGHT * len(head.sizes) / len(texts)))


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
        probabilities: what the head says about the texts [m, C].
    """
    nodes = np.concatenate([rows, texts])
    start = np.concatenate([targets, probabilities]).astype(np.float32)
    graph = neighbour_graph(nodes)
    found = start
    for _ in range(ROUNDS):
        before, found = found, start + TAKEN * graph.times(found)
        if np.array_equal(before, found):
            break  # further rounds would change nothing
    labels = found[len(rows) :]
    return labels / labels.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Graph:
    """A sparse matrix [N, N] by rows: the row at `row` has its values from `starts[row]` on. Every row has at least one."""

    starts: np.ndarray[Any, np.dtype[np.int64]]  # [N]
    columns: np.ndarray[Any, np.dtype[np.int64]]  # [values]
    values: np.ndarray[Any, np.dtype[np.float32]]  # [values]

    def times(self, matrix: Any) -> Any:
        """The product with a matrix [N, C], a part of the rows at a time, so that it stays in the processor's cache."""
        found = np.empty_like(matrix)
        ends = np.append(self.starts[1:], len(self.values))
        most = max(1, _CACHED // max(1, matrix.shape[1]))
        at = 0
        while at < len(self.starts):
            stop = max(at + 1, int(np.searchsorted(ends, self.starts[at] + most, side="right")))
            part = slice(int(self.starts[at]), int(ends[stop - 1]))
            products = matrix[self.columns[part]] * self.values[part, None]
            found[at:stop] = np.add.reduceat(products, self.starts[at:stop] - part.start, axis=0)
            at = stop
        return found


def neighbour_graph(nodes: Any) -> Graph:
    """The symmetric nearest-neighbour graph, normalised by degrees."""
    size, most = len(nodes), min(NEIGHBOURS, len(nodes) - 1)
    places, weights = np.empty((size, most), np.int64), np.empty((size, most), np.float32)
    for at in range(0, size, _BLOCK):
        near = nodes[at : at + _BLOCK] @ nodes.T  # [B, N]
        near[np.arange(len(near)), np.arange(at, at + len(near))] = -np.inf
        best = np.argpartition(-near, most - 1, axis=1)[:, :most]
        places[at : at + _BLOCK] = best
        weights[at : at + _BLOCK] = np.exp(NEARNESS * (np.take_along_axis(near, best, axis=1) - 1))
    owners = np.repeat(np.arange(size), most)
    cells = np.concatenate([owners * size + places.ravel(), places.ravel() * size + owners])  # both directions
    values = np.tile(weights.ravel(), 2)
    order = np.lexsort((-values, cells))
    cells, values = cells[order], values[order]
    first = np.append(True, cells[1:] != cells[:-1])  # the larger of two values for one cell
    (rows, columns), values = np.divmod(cells[first], size), values[first]
    starts = np.searchsorted(rows, np.arange(size))
    scale = (1 / np.sqrt(np.maximum(np.add.reduceat(values, starts), 1e-12))).astype(np.float32)  # [N]
    return Graph(starts, columns, scale[rows] * values * scale[columns])


def softmax(scores: Any) -> Any:
    """Probabilities [L, C]."""
    exponent = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponent / exponent.sum(axis=1, keepdims=True)


def _targets(head: Head) -> Any:
    return one_hot(np.repeat(np.arange(len(head.sizes)), head.sizes), len(head.sizes), head.rows)

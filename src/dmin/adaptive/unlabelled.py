"""Learning from unlabelled texts: a neighbour graph gives them soft labels, which the logistic part learns from.

Nodes are the rows of all classes and the unlabelled texts. Rows start from their classes, texts from the head's own
probabilities; each takes over part of what its neighbours have. Then the logistic part is fitted to rows and texts
together, so that new texts gain as well and nothing of the graph has to be kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dmin.adaptive.head import Head, one_hot, primal_of
from dmin.adaptive.logistic import fit_logistic
from dmin.adaptive.spread import Array

NEIGHBOURS, NEARNESS, TAKEN, ROUNDS = 10, 10.0, 0.5, 40
TEXT_WEIGHT = 0.2  # what an unlabelled text counts beside an example
CLASS_WEIGHT = 8.0  # what all of them count together at most, per class
MOST_TEXTS = 20_000  # more are not needed, and the graph compares each with each
_BLOCK = 1024


def learn_unlabelled(head: Head, vectors: Array) -> Head:
    """The head with its logistic part fitted to examples and unlabelled texts; class vectors and cosines stay.

    Args:
        head: fitted to its examples.
        vectors: of the unlabelled texts, by the encoder [m, D].
    """
    if head.dual is None or not len(vectors):
        return head
    texts = head.view(np.asarray(vectors))  # [m, D]
    rows = np.asarray(head.rows)
    labels = soft_labels(rows, _targets(head), texts, softmax(head.scores(texts)))  # [m, C]
    weight = min(TEXT_WEIGHT, CLASS_WEIGHT * len(head.sizes) / len(texts))
    nodes = np.concatenate([rows, texts])
    weights = np.concatenate([head.weights, np.full(len(texts), weight, np.float32)])
    dual = fit_logistic(nodes, np.concatenate([_targets(head), labels]), weights, head.recipe.regularisation)
    return replace(head, dual=dual[: len(rows)], primal=primal_of(dual, nodes))


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
        found = start + TAKEN * (graph @ found)
    labels = found[len(rows) :]
    return labels / labels.sum(axis=1, keepdims=True)


def neighbour_graph(nodes: Any) -> Any:
    """The symmetric nearest-neighbour graph, normalised by degrees: a sparse matrix [N, N]."""
    from scipy import sparse

    size, most = len(nodes), min(NEIGHBOURS, len(nodes) - 1)
    places, weights = np.empty((size, most), np.int64), np.empty((size, most), np.float32)
    for at in range(0, size, _BLOCK):
        near = nodes[at : at + _BLOCK] @ nodes.T  # [B, N]
        near[np.arange(len(near)), np.arange(at, at + len(near))] = -np.inf
        best = np.argpartition(-near, most - 1, axis=1)[:, :most]
        places[at : at + _BLOCK] = best
        weights[at : at + _BLOCK] = np.exp(NEARNESS * (np.take_along_axis(near, best, axis=1) - 1))
    owners = np.repeat(np.arange(size), most)
    graph = sparse.csr_matrix((weights.ravel(), (owners, places.ravel())), shape=(size, size))
    graph = graph.maximum(graph.T)
    scale = sparse.diags((1 / np.sqrt(np.maximum(np.asarray(graph.sum(axis=1)).ravel(), 1e-12))).astype(np.float32))
    return (scale @ graph @ scale).tocsr()


def softmax(scores: Any) -> Any:
    """Probabilities [L, C]."""
    exponent = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponent / exponent.sum(axis=1, keepdims=True)


def _targets(head: Head) -> Any:
    return one_hot(np.repeat(np.arange(len(head.sizes)), head.sizes), len(head.sizes), head.rows)

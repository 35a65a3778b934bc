"""Clusters of a pile at three grain sizes, each a refinement of the one before.

Vectors are first drawn towards their nearest neighbours, which makes blurred groups compact. Then k-means on their
principal components; how many clusters, the silhouette says on a sample: the largest number that comes near its highest
value, because the silhouette prefers few. The fine grain has twice as many; Ward's method joins its centres into the medium
and the coarse grain, so that a coarse cluster is a union of fine ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dmin.adaptive.graph import neighbour_graph
from dmin.labelling.vectors import FloatArray

GRAINS = ("coarse", "medium", "fine")
LARGE = 20_000  # rows from which k-means works in small batches, and vectors stay where they are
_NEIGHBOURS, _TAKEN, _ROUNDS = 10, 0.9, 30  # of the drawing towards neighbours
_SAMPLE = 2000  # rows that the number of clusters is chosen on
_STEP = 1.35  # ratio of two numbers of clusters that are tried
_COMPONENTS = 60  # in all dimensions of a vector the silhouette is nearly flat
_NEAR = 0.95  # of the highest silhouette
_MOST, _PER_CLUSTER = 300, 5  # clusters tried at most; texts for each of them at least
_SMALLEST, _FEW = 3, 100  # texts that make a cluster; in a pile of fewer texts than this, two do
_ODD = 3.0  # robust standard deviations below the median from which a text fits nowhere


@dataclass(frozen=True)
class Clustering:
    """The cluster of each row at one grain, -1 where it fits nowhere, and the unit centres [k, d]."""

    grain: str
    assigned: Any  # [n]
    centres: FloatArray


def cluster(vectors: FloatArray, *, count: int | None = None, seed: int = 0) -> list[Clustering]:
    """Cluster the rows at three grains; one grain alone where there are too few rows for more.

    Args:
        vectors: centred, of norm 1, [n, d].
        count: clusters of the medium grain; without it, chosen by the silhouette.
        seed: of k-means.
    """
    different = len(np.unique(vectors.round(5), axis=0)) if len(vectors) <= _SAMPLE else len(vectors)
    most = max(1, min(different, len(vectors)))
    reduced = _principal(drawn_together(vectors), seed)  # [n, components]
    medium = min(count or choose_count(reduced, seed), most)
    fine = max(medium, min(2 * medium, most // 3))
    if fine < 6:
        return [_finished("medium", vectors, _k_means(reduced, medium, seed))]
    labels = _k_means(reduced, fine, seed)  # [n]
    centres = _centres(reduced, labels, fine)  # [fine, components]
    found = []
    for grain, size in zip(GRAINS, (max(2, round(medium / 3)), medium, fine), strict=True):
        joined = labels if size >= fine else _ward(centres, size)[labels]
        found.append(_finished(grain, vectors, joined))
    return found


def drawn_together(vectors: FloatArray) -> FloatArray:
    """Each vector [n, d] mixed with those of its neighbours, and through them with theirs; of norm 1.

    A large pile stays as it is: the graph compares each with each.
    """
    if not 2 * _NEIGHBOURS < len(vectors) < LARGE:
        return vectors
    graph = neighbour_graph(vectors, _NEIGHBOURS)
    found = vectors
    for _ in range(_ROUNDS):
        found = (1 - _TAKEN) * vectors + _TAKEN * graph.times(found)
    norm = np.linalg.norm(found, axis=1, keepdims=True)
    return (found / np.where(norm > 1e-9, norm, 1)).astype(np.float32)


def choose_count(vectors: FloatArray, seed: int = 0) -> int:
    """The largest number of clusters whose silhouette on a sample of rows is near the highest."""
    from sklearn.metrics import silhouette_score

    generator = np.random.default_rng(seed)
    rows = np.sort(generator.permutation(len(vectors))[:_SAMPLE])
    sample = vectors[rows]
    scores: dict[int, float] = {}
    size = 3.0
    while round(size) <= min(_MOST, len(sample) // _PER_CLUSTER):
        labels = _k_means(sample, round(size), seed)
        if 1 < len(set(labels)) < len(sample):
            scores[round(size)] = float(silhouette_score(sample, labels))
        size *= _STEP
    highest = max(scores.values(), default=0.0)
    return max((size for size, score in scores.items() if score >= _NEAR * highest > 0), default=1)


def _principal(vectors: FloatArray, seed: int) -> FloatArray:
    """The first principal components of the rows; the rows themselves where there are few rows or dimensions."""
    from sklearn.decomposition import PCA

    if min(vectors.shape) <= 2 * _COMPONENTS:
        return vectors
    found: FloatArray = PCA(_COMPONENTS, svd_solver="randomized", random_state=seed).fit_transform(vectors)
    return found


def _k_means(vectors: FloatArray, count: int, seed: int) -> Any:
    """The cluster of each row, [n]."""
    import warnings

    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    if count < 2:
        return np.zeros(len(vectors), int)
    kind = KMeans if len(vectors) < LARGE else MiniBatchKMeans
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than clusters: fewer clusters
        return kind(count, n_init=1, random_state=seed, max_iter=50).fit_predict(vectors)


def _ward(centres: FloatArray, count: int) -> Any:
    """The joined cluster of each centre, [k]."""
    from sklearn.cluster import AgglomerativeClustering

    return AgglomerativeClustering(count, linkage="ward").fit_predict(centres)


def _centres(vectors: FloatArray, labels: Any, count: int) -> FloatArray:
    """The unit mean of each cluster, [k, d]; zero for an empty one."""
    sums = np.zeros((count, vectors.shape[1]), np.float32)
    np.add.at(sums, labels, vectors)
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    found: FloatArray = np.divide(sums, norms, out=np.zeros_like(sums), where=norms > 1e-6)
    return found


def _finished(grain: str, vectors: FloatArray, labels: Any) -> Clustering:
    """Clusters by size, largest first; tiny clusters and texts far from their centre fit nowhere."""
    centres = _centres(vectors, labels, int(labels.max()) + 1)
    cosines = np.einsum("nd,nd->n", vectors, centres[labels])  # [n]
    middle = np.median(cosines)
    spread = 1.4826 * np.median(np.abs(cosines - middle))
    assigned = np.where(cosines < middle - _ODD * spread - 1e-6, -1, labels)
    sizes = np.bincount(assigned[assigned >= 0], minlength=len(centres))
    smallest = min(_SMALLEST if len(vectors) >= _FEW else 2, len(vectors))
    order = [int(place) for place in np.argsort(-sizes, kind="stable") if sizes[place] >= smallest]
    number = np.full(len(centres) + 1, -1)  # the last place is for -1
    number[order] = np.arange(len(order))
    return Clustering(grain, number[assigned], centres[order])

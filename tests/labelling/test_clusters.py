"""Clusters of vectors: blurred groups, small and degenerate piles."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from dmin.labelling import clusters
from dmin.labelling.clusters import cluster, drawn_together


def groups(per: int = 30, noise: float = 0.28, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Eight blurred groups in 40 dimensions, and which one each vector [n, 40] is of."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((8, 40))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    owner = np.repeat(np.arange(8), per)
    found = (centres[owner] + noise * random.standard_normal((len(owner), 40))).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True), owner


def test_blurred_groups_are_found_because_neighbours_are_drawn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    means = []
    for draw in (drawn_together, lambda vectors: vectors):
        monkeypatch.setattr(clusters, "drawn_together", draw)
        scores = []
        for seed in range(4):
            vectors, owner = groups(seed=seed)
            found = next(part for part in cluster(vectors, count=8) if part.grain == "medium")
            scores.append(adjusted_rand_score(owner, found.assigned))
        means.append(np.mean(scores))
    assert means[0] > means[1] + 0.05


def test_drawn_vectors_have_norm_one_and_lie_nearer_to_their_neighbours() -> None:
    vectors, owner = groups()
    found = drawn_together(vectors)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    own = [np.mean(part[owner == 0] @ part[owner == 0].T) for part in (vectors, found)]
    assert own[1] > own[0]


def test_few_and_very_many_vectors_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, _ = groups()
    few = vectors[:20]
    assert drawn_together(few) is few
    monkeypatch.setattr(clusters, "LARGE", len(vectors))
    assert drawn_together(vectors) is vectors


def test_the_same_vector_many_times_is_one_cluster() -> None:
    vectors = np.tile(np.eye(6, dtype=np.float32)[:1], (60, 1))
    assert all(set(part.assigned.tolist()) == {0} for part in cluster(vectors))

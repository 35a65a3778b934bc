"""The graph of nearest neighbours against a dense matrix."""

from __future__ import annotations

import numpy as np
import pytest

from dmin.adaptive.graph import NEARNESS, neighbour_graph


@pytest.mark.parametrize(("size", "neighbours"), [(2, 5), (30, 4), (1500, 3)])
def test_it_is_symmetric_and_normalised_by_degrees(size: int, neighbours: int) -> None:
    nodes = np.random.default_rng(size).normal(size=(size, 8)).astype(np.float32)
    nodes /= np.linalg.norm(nodes, axis=1, keepdims=True)
    near = nodes @ nodes.T
    np.fill_diagonal(near, -np.inf)
    most = min(neighbours, size - 1)
    dense = np.zeros((size, size), np.float32)
    for row in range(size):
        best = np.argsort(-near[row])[:most]
        dense[row, best] = np.exp(NEARNESS * (near[row, best] - 1))
    dense = np.maximum(dense, dense.T)
    scale = 1 / np.sqrt(dense.sum(axis=1))
    expected = scale[:, None] * dense * scale
    matrix = np.random.default_rng(0).normal(size=(size, 7)).astype(np.float32)
    assert np.allclose(neighbour_graph(nodes, neighbours).times(matrix), expected @ matrix, atol=1e-4)

"""The graph of nearest neighbours of vectors, and products with it, without a library of sparse matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

NEARNESS = 10.0  # how much more a nearer neighbour counts
_BLOCK = 1024
_CACHED = 1 << 16  # products that are summed at once


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


def neighbour_graph(nodes: Any, neighbours: int) -> Graph:
    """The symmetric graph of the nearest neighbours of nodes of norm 1 [N, D], normalised by degrees."""
    size, most = len(nodes), min(neighbours, len(nodes) - 1)
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

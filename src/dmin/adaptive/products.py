"""Products with rows for each class: a class that comes or goes moves no result of the others, by not a single bit.

How a product is rounded depends on its shape, and with some of OpenBLAS's kernels (Haswell's, so on AMD's processors
too) also on the place of a row in it. So in numpy every class has a product of its own, always of one shape. Other
namespaces, whose stacked products copy their operands, multiply a fixed number of classes at a time.
"""

from __future__ import annotations

import numpy as np

from dmin.adaptive.namespace import array_namespace, device
from dmin.adaptive.spread import Array

BLOCK_CLASSES = 64


def class_products(queries: Array, rows: Array) -> Array:
    """Inner products [L, C] of queries [L, n] with a row for each class [C, n]."""
    xp, classes = array_namespace(queries), rows.shape[0]
    if isinstance(queries, np.ndarray):
        return np.matmul(rows[:, None, :], np.ascontiguousarray(queries.T))[:, 0, :].T  # [C, 1, n] with [n, L]
    parts = []
    for at in range(0, classes, BLOCK_CLASSES):
        block = rows[at : at + BLOCK_CLASSES, :]  # [B, n]
        if block.shape[0] < BLOCK_CLASSES:
            padding = xp.zeros(
                (BLOCK_CLASSES - block.shape[0], block.shape[1]), dtype=block.dtype, device=device(block)
            )
            block = xp.concat([block, padding], axis=0)
        parts.append(queries @ block.T)
    return xp.concat(parts, axis=1)[:, :classes]


def example_products(queries: Array, rows: Array, size: int) -> Array:
    """Inner products [B, K, L] of queries [L, n] with the rows [B·K, n] of B classes, `size` = K of each."""
    xp = array_namespace(queries)
    if isinstance(queries, np.ndarray):
        return np.matmul(rows.reshape(-1, size, rows.shape[1]), np.ascontiguousarray(queries.T))
    return xp.reshape(rows @ queries.T, (-1, size, queries.shape[0]))

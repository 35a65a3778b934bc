"""Products with a row for each class, of a fixed shape: a class that comes or goes moves no result of the others."""

from __future__ import annotations

from dmin.adaptive.namespace import array_namespace, device
from dmin.adaptive.spread import Array

BLOCK_CLASSES = 64


def class_products(queries: Array, rows: Array) -> Array:
    """Inner products [L, C] of queries [L, n] with a row for each class [C, n], a fixed number of classes at a time.

    How a product is rounded depends on its shape: the last block is filled up with zeros.
    """
    xp, classes = array_namespace(queries), rows.shape[0]
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

"""Nearest prototypes on the array API: the prototype of a class is the sum of its rows, each of norm 1 times its weight.

The method of the registry and the classifier both score with these functions, on torch tensors or numpy arrays.
"""

from __future__ import annotations

from dmin.adaptive.namespace import array_namespace
from dmin.adaptive.spread import Array

COSINE_EPSILON = 1e-8


def unit_rows(rows: Array) -> Array:
    """The last axis scaled to norm 1; a zero vector stays zero, with a finite gradient where there are gradients."""
    xp = array_namespace(rows)
    squared = xp.sum(rows * rows, axis=-1, keepdims=True)
    return rows / xp.sqrt(xp.clip(squared, COSINE_EPSILON**2, None))


def weighted_rows(support: Array, mask: Array | None, row_weights: Array | None) -> Array:
    """Support vectors of norm 1, times their weights; 0 where masked. [..., C, K, d]."""
    xp, rows = array_namespace(support), unit_rows(support)
    if mask is not None:
        rows = rows * xp.astype(mask, rows.dtype)[..., None]
    return rows if row_weights is None else rows * row_weights[..., None]


def prototypes(support: Array, mask: Array | None = None, row_weights: Array | None = None) -> Array:
    """The prototypes, of norm 1: [..., C, K, d] -> [..., C, d]."""
    xp = array_namespace(support)
    return unit_rows(xp.sum(weighted_rows(support, mask, row_weights), axis=-2))


def similarities(prototypes: Array, queries: Array) -> Array:
    """Cosines [..., L, C] of prototypes [..., C, d] and queries [..., L, d], all of norm 1."""
    xp = array_namespace(queries)
    # In single precision the product for one query would be rounded otherwise than for many.
    rows, asked = (xp.astype(array, xp.float64, copy=False) for array in (prototypes, queries))
    return xp.astype(asked @ xp.matrix_transpose(rows), queries.dtype, copy=False)


def prototype_shares(
    support: Array, queries: Array, mask: Array | None = None, row_weights: Array | None = None
) -> Array:
    """Each row's exact share of each cosine: [..., L, C, K], adding up over K to the cosine."""
    xp = array_namespace(support)
    rows = weighted_rows(support, mask, row_weights)  # [..., C, K, d]
    total = xp.sum(rows, axis=-2)  # [..., C, d]
    size = xp.clip(xp.sqrt(xp.sum(total * total, axis=-1)), COSINE_EPSILON, None)  # [..., C]
    asked = xp.matrix_transpose(unit_rows(queries))[..., None, :, :]  # [..., 1, d, L]
    parts = rows @ asked  # [..., C, K, L]
    return xp.moveaxis(parts / size[..., None, None], -1, -3)

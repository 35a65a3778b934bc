"""Clusters of random vectors in place of texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmin.adaptive import Head, Recipe, Spread, fit_head

WIDTH = 24


def clusters(classes: int, size: int, seed: int = 0, noise: float = 1.0) -> Any:
    """Vectors [C, K, d] around a common mean."""
    random = np.random.default_rng(seed)
    means = random.normal(size=(classes, 1, WIDTH)) + 2.0
    return (means + noise * random.normal(size=(classes, size, WIDTH))).astype(np.float32)


def spread(seed: int = 1) -> Spread:
    """A spread with some directions that stand out."""
    stretched = clusters(6, 40, seed) * np.linspace(2.0, 0.2, WIDTH, dtype=np.float32)
    return Spread.estimate([(stretched.reshape(-1, WIDTH), np.repeat(np.arange(6), 40))])


def fitted(vectors: Any, named: bool = False, recipe: Recipe | None = None) -> Head:
    """A head on vectors [C, K, d]; with `named`, the last row of each class is its name."""
    classes, size = vectors.shape[:2]
    rows = vectors.reshape(-1, vectors.shape[-1])
    return fit_head(recipe or Recipe(), [spread()], rows, [size] * classes, [named] * classes)

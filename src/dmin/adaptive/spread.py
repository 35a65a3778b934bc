"""Vectors as the adaptive head compares them: centred on the task, weighted by the task's spread, of norm 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmin.adaptive.namespace import array_namespace

Array = Any  # a float32 array of numpy, or of any other namespace of the array API

BAND_EDGES = (0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # directions that share one estimate of the task's spread
TINY = 1e-9


@dataclass(frozen=True)
class Recipe:
    """The constants of the adaptive head; `reproduce/KINDS.md` says how each was chosen."""

    damping: float = 0.2  # how far the general spread is divided out
    matching: float = 1.0  # how far the task's own spread is multiplied in again
    floor: float = 0.1  # share of the identity in the general spread
    regularisation: float = 10.0  # C of the logistic regression
    sharpness: float = 1.25  # of the softmax over a class's rows, times the root of the typical number of rows
    cosine_weight: float = 8.0  # of the class vector's cosine beside the logits
    most_name_weight: float = 2.0  # a name counts as 1 + n / 2 examples where a class has n, at most this
    balance: float = 1.15  # exponent of typical / own number of examples: what the examples of a large class weigh
    most_classes: int = 1000  # above, the logistic part is left out


def unit(vectors: Array) -> Array:
    """Vectors of norm 1; a zero vector stays zero."""
    xp = array_namespace(vectors)
    norm = xp.sqrt(xp.sum(vectors * vectors, axis=-1, keepdims=True))
    return vectors / xp.where(norm > TINY, norm, xp.ones_like(norm))


@dataclass(frozen=True, eq=False)
class Spread:
    """The general within-class spread of an encoder: eigenvalues [d], largest first, of mean 1, and directions [d, d]."""

    values: Array
    directions: Array

    @classmethod
    def flat(cls, width: int) -> Spread:
        """No direction stands out."""
        return cls(np.ones(width, np.float32), np.eye(width, dtype=np.float32))

    @classmethod
    def estimate(cls, kinds: Sequence[tuple[Any, Sequence[Any]]]) -> Spread:
        """From labelled vectors of several kinds of text, each kind counting the same: [(vectors [n, d], labels [n])]."""
        total: Any = 0.0
        for vectors, labels in kinds:
            rows = np.asarray(unit(vectors), dtype=np.float64)
            _, classes = np.unique(np.asarray(labels), return_inverse=True)
            sums = np.zeros((int(classes.max()) + 1, rows.shape[1]))  # [C, d]
            np.add.at(sums, classes, rows)
            rest = rows - (sums / np.bincount(classes)[:, None])[classes]  # [n, d]
            covariance = rest.T @ rest  # [d, d]
            total = total + covariance / np.trace(covariance) * len(covariance)
        values, directions = np.linalg.eigh(total / len(kinds))
        return cls(np.maximum(values[::-1], 1e-6).astype(np.float32), directions[:, ::-1].astype(np.float32).copy())


def band_means(values: Array) -> Array:
    """Each value [d] replaced by the mean of its band of directions."""
    xp = array_namespace(values)
    edges = [edge for edge in BAND_EDGES if edge < values.shape[0]]
    parts = []
    for start, end in zip(edges, (*edges[1:], values.shape[0]), strict=True):
        parts.append(xp.mean(values[start:end]) * xp.ones_like(values[start:end]))
    return xp.concat(parts)


@dataclass(frozen=True, eq=False)
class Side:
    """One encoder's part of a view: minus the centre, in the spread's directions, times the gains, of norm 1."""

    directions: Array  # [d, d]
    centre: Array  # [d], of the examples
    name_centre: Array  # [d], of the names
    gain: Array  # [d]

    @property
    def width(self) -> int:
        """The width of the vectors that it takes."""
        return int(self.centre.shape[0])

    def __call__(self, vectors: Array, *, names: bool) -> Array:
        """Vectors [L, d] of texts, or of names: [L, d]."""
        centre = self.name_centre if names else self.centre
        return unit(((unit(vectors) - centre) @ self.directions) * self.gain)


@dataclass(frozen=True, eq=False)
class View:
    """Vectors of one encoder, or of several side by side, as the head compares them."""

    sides: tuple[Side, ...]

    def __call__(self, vectors: Array, *, names: bool = False) -> Array:
        """Vectors [L, D] of texts, or of names, of norm 1."""
        xp, found, at = array_namespace(vectors), [], 0
        for side in self.sides:
            found.append(side(vectors[:, at : at + side.width], names=names))
            at += side.width
        return found[0] if len(found) == 1 else xp.concat(found, axis=1) / len(found) ** 0.5

    @classmethod
    def fit(cls, recipe: Recipe, spreads: Sequence[Spread], examples: Array, share: Array, names: Array | None) -> View:
        """From examples [n, D] with shares [n] that add up to 1, and names [m, D]."""
        at, sides = 0, []
        for spread in spreads:
            part = slice(at, at + spread.values.shape[0])
            sides.append(fit_side(recipe, spread, examples[:, part], share, None if names is None else names[:, part]))
            at = part.stop
        return cls(tuple(sides))


def fit_side(recipe: Recipe, spread: Spread, examples: Array, share: Array, names: Array | None) -> Side:
    """Centre and gains of one encoder from examples [n, d] with shares [n], and names [m, d]."""
    kind = examples if names is None or examples.shape[0] else names
    xp = array_namespace(kind)
    values, directions = (xp.asarray(part, dtype=kind.dtype) for part in (spread.values, spread.directions))
    mean_of_names = xp.mean(unit(names), axis=0) if names is not None and names.shape[0] > 1 else None
    rows = unit(examples)
    centre = mean_of_names if mean_of_names is not None else xp.zeros_like(values)  # [d]; where there is no example
    centre = share @ rows if examples.shape[0] else centre
    own = share @ ((rows - centre) @ directions) ** 2 if examples.shape[0] else xp.zeros_like(values)  # [d]
    ratio = xp.ones_like(values)
    if examples.shape[0] >= 3 and float(xp.sum(own)) > 1e-6:  # else there is nothing to estimate a spread from
        general = band_means(values)
        ratio = (band_means(own) / xp.sum(own)) / (general / xp.sum(general))  # [d]
    floored = (1 - recipe.floor) * values + recipe.floor
    gain = xp.sqrt(floored**-recipe.damping * ratio**recipe.matching)
    return Side(directions, centre, mean_of_names if mean_of_names is not None else centre, gain)

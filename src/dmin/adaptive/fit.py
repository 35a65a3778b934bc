"""From an encoder's vectors of all classes to a fitted head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dmin.adaptive.head import Head, row_values
from dmin.adaptive.logistic import fit_logistic, one_hot, primal_of
from dmin.adaptive.namespace import array_namespace, device
from dmin.adaptive.spread import Array, Recipe, Spread, View

# The quantile of the classes' numbers of examples that is typical. Not the median: where half of the classes have many
# examples, the others would lose to them.
TYPICAL = 0.25


def fit_head(
    recipe: Recipe, spreads: Sequence[Spread], vectors: Array, sizes: Sequence[int], named: Sequence[bool]
) -> Head:
    """Fit a head; the order of the classes changes nothing but the order of its columns, to the last bit.

    Args:
        recipe: the constants.
        spreads: the general spread of each encoder that stands in the vectors, side by side.
        vectors: [n, D], class by class, each with its examples and then its name.
        sizes: rows of each class.
        named: is the last row of each class its name?
    """
    xp, where = array_namespace(vectors), device(vectors)
    parts = list(class_slices(sizes))
    content = [np.asarray(vectors[part, :]).tobytes() for part in parts]
    order = sorted(range(len(parts)), key=lambda column: content[column])  # sums are rounded in this order
    index = np.concatenate([np.arange(parts[column].start, parts[column].stop) for column in order])
    given = xp.take(vectors, xp.asarray(index, device=where), axis=0)
    head = _fit(recipe, spreads, given, [sizes[column] for column in order], [named[column] for column in order])
    back = xp.asarray(np.argsort(index), device=where)
    columns = xp.asarray(np.argsort(order), device=where)
    dual, primal = head.dual, head.primal
    return replace(
        head, rows=xp.take(head.rows, back, axis=0), sizes=tuple(sizes), named=tuple(named),
        dual=None if dual is None else xp.take(xp.take(dual, back, axis=0), columns, axis=1),
        primal=None if primal is None else xp.take(primal, columns, axis=0),
    )  # fmt: skip


def _fit(
    recipe: Recipe, spreads: Sequence[Spread], vectors: Array, sizes: Sequence[int], named: Sequence[bool]
) -> Head:
    view, rows = _fit_view(recipe, spreads, vectors, sizes, named)
    counts = [size - yes for size, yes in zip(sizes, named, strict=True)]
    typical = max(1.0, quantile(counts, TYPICAL))
    head = Head(
        recipe, view, typical, min(recipe.most_name_weight, 1 + typical / 2),
        recipe.sharpness * (typical + float(np.mean(named))) ** 0.5, rows, tuple(sizes), tuple(named),
    )  # fmt: skip
    if not 2 <= len(sizes) <= recipe.most_classes:
        return head
    target = one_hot(np.repeat(np.arange(len(sizes)), sizes), len(sizes), rows)
    dual = fit_logistic(rows, target, head.weights, recipe.regularisation)
    return replace(head, dual=dual, primal=primal_of(dual, rows))


def _fit_view(
    recipe: Recipe, spreads: Sequence[Spread], vectors: Array, sizes: Sequence[int], named: Sequence[bool]
) -> tuple[View, Array]:
    """The view of the classes, each counting the same, and the vectors as rows [n, D]."""
    xp, where = array_namespace(vectors), device(vectors)
    counts = np.array([size - yes for size, yes in zip(sizes, named, strict=True)])  # examples per class [C]
    is_name = np.concatenate([
        row_values(size, yes, np.zeros(size, np.float32), 1.0) for size, yes in zip(sizes, named, strict=True)
    ])  # fmt: skip
    examples, names = np.flatnonzero(is_name == 0), np.flatnonzero(is_name)
    with_examples = int((counts > 0).sum())
    if with_examples < 2:
        examples = examples[:0]  # the mean of one class is the class itself: it is not subtracted
    owner = np.repeat(np.arange(len(sizes)), sizes)
    share = (1 / (max(1, with_examples) * np.maximum(counts, 1)))[owner[examples]].astype(np.float32)  # adds up to 1
    of_texts = xp.take(vectors, xp.asarray(examples, device=where), axis=0)
    of_names = xp.take(vectors, xp.asarray(names, device=where), axis=0) if len(names) else None
    view = View.fit(recipe, spreads, of_texts, xp.asarray(share, device=where), of_names)
    if of_names is None:
        return view, view(vectors)
    mark = xp.asarray(is_name[:, None] > 0, device=where)
    return view, xp.where(mark, view(vectors, names=True), view(vectors))


def quantile(values: Sequence[float] | np.ndarray[Any, Any], part: float) -> float:
    """`numpy.quantile` of some values; that of numpy imports its masked arrays, which takes longer than a fit."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    place = part * (len(ordered) - 1)
    below = int(place)
    low, high, rest = ordered[below], ordered[min(below + 1, len(ordered) - 1)], place - below
    return float(low + (high - low) * rest if rest < 0.5 else high - (high - low) * (1 - rest))


def class_slices(sizes: Sequence[int]) -> Iterator[slice]:
    """The rows of each class."""
    at = 0
    for size in sizes:
        yield slice(at, at + size)
        at += size

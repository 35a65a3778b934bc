"""The adaptive head of a state: fitted to all classes at a fit, extended class by class afterwards, packed for storage."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dmin.adaptive import Head, View, fit_head
from dmin.adaptive.index import ClassIndex
from dmin.adaptive.namespace import array_namespace
from dmin.adaptive.spread import Side
from dmin.adaptive.voters import Voters
from dmin.classifier.arrays import Array, as_numpy
from dmin.classifier.knowledge import ClassSupport, Knowledge
from dmin.classifier.scoring import Model
from dmin.errors import ModelError
from dmin.model.adaptive_head import AdaptiveSetup

# A classifier that grows class by class from nothing is fitted anew at each change until it has so many classes: the mean
# and the spread of one or two classes say little about the kind of text.
SETTLED_CLASSES = 20
INDEX = "index."  # before the names of the arrays of an index
VOTERS = "voters."  # before those of the unlabelled texts that vote
_OF_VOTERS = ("rows", "labels", "of_new", "of_own", "level")
_NUMBERS = ("typical", "name_weight", "sharpness", "sizes", "named")


def fit_model(model: Model, knowledge: Knowledge) -> Model:
    """The model with the adaptive head fitted to these classes; as it is where another method scores."""
    if model.setup is None:
        return model
    if not knowledge.classes:
        return replace(model, head=None, index=None)
    entries, recipe = knowledge.classes, model.setup.recipe
    if len(entries) > recipe.most_classes:
        warnings.warn(
            f"{len(entries)} classes: above {recipe.most_classes} the logistic part of the default head is left out, and "
            "the class vectors decide alone",
            stacklevel=7,
        )
    vectors = array_namespace(entries[0].vectors).concat([_rows(entry) for entry in entries], axis=0)  # [n, d]
    head = fit_head(
        recipe, model.setup.spreads_for(vectors.shape[1]), vectors, [len(entry.texts) for entry in entries],
        [entry.named for entry in entries],
    )  # fmt: skip
    if head.dual is None and len(entries) > recipe.most_classes:
        head = head.with_room()
    return replace(model, head=head, index=ClassIndex.build(head) if model.indexed else None)


def extend_model(model: Model, before: Knowledge, changed: Sequence[ClassSupport]) -> Model:
    """The model with these classes added, or in place of those of the same label; no other class's score moves."""
    head, index = model.head, model.index
    if head is None:
        return model
    for entry in changed:
        vectors = _rows(entry)  # [K, d]
        known = before.by_label.get(entry.label)
        if known is None:
            head, column = head.with_class(vectors, entry.named), len(head.sizes)
        elif known.texts != entry.texts or known.named != entry.named:
            column = before.labels.index(entry.label)
            head = head.with_rows(column, vectors, entry.named, places_before(known, entry))
        else:
            continue
        index = None if index is None else index.changed(head, column)
    return replace(model, head=head, index=index)


def _rows(entry: ClassSupport) -> Array:
    """The vectors of a class [K, d] in single precision."""
    xp = array_namespace(entry.vectors)
    return xp.astype(entry.vectors, xp.float32)


def remove_from_model(model: Model, before: Knowledge, label: Any) -> Model:
    """The model without a class; no other class's score moves."""
    if model.head is None:
        return model
    column = before.labels.index(label)
    head = model.head.without_class(column)
    return replace(model, head=head, index=None if model.index is None else model.index.without(head, column))


def places_before(known: ClassSupport, entry: ClassSupport) -> list[int]:
    """For each row of a class, which row it was before; -1 for a new one. A name is never taken for an example."""
    free: dict[str, list[int]] = {}
    for place, text in enumerate(known.examples):
        free.setdefault(text, []).append(place)
    places = [free[text].pop(0) if free.get(text) else -1 for text in entry.examples]
    if entry.named:
        same = known.named and known.texts[-1] == entry.texts[-1]
        places.append(len(known.texts) - 1 if same else -1)
    return places


# Storage


def pack(head: Head) -> tuple[dict[str, Any], dict[str, Any]]:
    """A fitted head as (arrays, plain values)."""
    arrays = {"rows": head.rows}
    if head.dual is not None:
        arrays |= {"dual": head.dual, "primal": head.primal}
    if head.voters is not None:
        arrays |= {VOTERS + name: getattr(head.voters, name) for name in _OF_VOTERS}
    for number, side in enumerate(head.view.sides):
        arrays |= {f"{name}.{number}": getattr(side, name) for name in ("centre", "name_centre", "gain")}
    arrays = {name: as_numpy(array) for name, array in arrays.items()}
    values = {name: getattr(head, name) for name in _NUMBERS}
    if head.voters is not None:
        values["voters"] = {"scale": head.voters.scale, "own_scale": head.voters.own_scale}
    return arrays, values | {"sizes": list(head.sizes), "named": list(head.named)}


def packed_model(model: Model) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fitted head of a model with its index, as (arrays, plain values)."""
    if model.head is None:
        raise TypeError("the adaptive head is not fitted")
    arrays, values = pack(model.head)
    if model.index is not None:
        arrays |= {INDEX + name: array for name, array in model.index.packed().items()}
    return arrays, values


def unpack(
    setup: AdaptiveSetup,
    arrays: Mapping[str, Any],
    values: Mapping[str, Any],
    place: Callable[[Any], Array] = as_numpy,
) -> Head:
    """What `pack` gave, with the directions that come with the package.

    Args:
        setup: constants and directions.
        arrays: of `pack`.
        values: of `pack`.
        place: makes an array of numpy one of those that the model computes with.

    Raises:
        ModelError: when the parts do not fit each other.
    """
    rows = np.asarray(arrays["rows"])  # [n, D]
    sides = []
    for number, spread in enumerate(setup.spreads_for(rows.shape[1])):
        parts = [np.asarray(arrays[f"{name}.{number}"]) for name in ("centre", "name_centre", "gain")]
        sides.append(Side(place(spread.directions), *map(place, parts)))
    dual, primal = (np.asarray(arrays[name]) if name in arrays else None for name in ("dual", "primal"))
    sizes, named = tuple(values["sizes"]), tuple(values["named"])
    fits = [sum(sizes) <= len(rows), len(sizes) == len(named), sum(side.width for side in sides) == rows.shape[1]]
    if dual is not None and primal is not None:
        fits += [dual.shape == (len(rows), len(sizes)), primal.shape == (len(sizes), rows.shape[1])]
    voters = None
    if "voters" in values:
        parts_of = {name: place(np.asarray(arrays[VOTERS + name])) for name in _OF_VOTERS}
        voters = Voters(
            **parts_of, scale=float(values["voters"]["scale"]), own_scale=float(values["voters"]["own_scale"])
        )
        fits.append(voters.fits(len(sizes), rows.shape[1]))
    if not all(fits):
        raise ModelError("the parts of its fitted head do not fit each other")
    return Head(
        setup.recipe, View(tuple(sides)), float(values["typical"]), float(values["name_weight"]),
        float(values["sharpness"]), place(rows), sizes, named, None if dual is None else place(dual),
        None if primal is None else place(primal), voters=voters,
    )  # fmt: skip

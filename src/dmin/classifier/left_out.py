"""Leave-one-out scores: every example against its own class without it, and against all the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dmin.adaptive.namespace import array_namespace
from dmin.classifier.arrays import Array, as_numpy
from dmin.classifier.knowledge import ClassSupport, Knowledge
from dmin.classifier.scoring import Model

CLASSES_AT_ONCE = 64  # whose examples are scored together, which bounds the memory


@dataclass(frozen=True)
class LeftOut:
    """One example as if it were new: the cosine to its own class without it, and to the nearest other class."""

    entry: ClassSupport
    row: int
    own: float
    other: float
    nearest: int  # column of the nearest other class; -1 if there is none

    @property
    def highest(self) -> float:
        """The cosine that would decide."""
        return max(self.own, self.other)


def leave_each_out(knowledge: Knowledge, model: Model, most: int | None = None) -> Iterator[LeftOut]:
    """Each example of the classes with two or more rows; with `most`, of so many classes drawn at random."""
    columns = list(range(len(knowledge.classes)))
    if most is not None and len(columns) > most:
        columns = np.random.default_rng(0).permutation(len(columns))[:most].tolist()
    entries = knowledge.classes
    columns = [column for column in columns if len(entries[column].texts) > 1 and entries[column].examples]
    for at in range(0, len(columns), CLASSES_AT_ONCE):
        yield from _leave_out(knowledge, model, columns[at : at + CLASSES_AT_ONCE])


def _leave_out(knowledge: Knowledge, model: Model, columns: Sequence[int]) -> Iterator[LeftOut]:
    """Each example of the classes of these columns, scored together."""
    alone = len(knowledge.classes) < 2
    examples = [(column, row) for column in columns for row in range(len(knowledge.classes[column].examples))]
    queries = example_vectors(knowledge, examples)  # [n, d]
    scores = np.array(as_numpy(model.cosines(queries, knowledge)))  # [n, C] (a copy)
    scores[np.arange(len(examples)), [column for column, _ in examples]] = -np.inf
    others, places = scores.max(axis=1), scores.argmax(axis=1)
    for number, (column, row) in enumerate(examples):
        entry = knowledge.classes[column]
        own = model.without(entry, row, queries[number : number + 1], knowledge.name_weight, column)
        yield LeftOut(entry, row, own, float(others[number]), -1 if alone else int(places[number]))


def example_vectors(knowledge: Knowledge, examples: Sequence[tuple[int, int]]) -> Array:
    """The vectors [n, d] of examples, given as (column of the class, row)."""
    rows = [knowledge.classes[column].vectors[row, :] for column, row in examples]
    return array_namespace(rows[0]).stack(rows)

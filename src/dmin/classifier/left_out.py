"""Leave-one-out scores: every example against its own class without it, and against all the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from dmin.classifier.knowledge import ClassSupport, Knowledge
from dmin.classifier.scoring import Model


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


@torch.no_grad()
def leave_each_out(knowledge: Knowledge, model: Model, most: int | None = None) -> Iterator[LeftOut]:
    """Each example of the classes with two or more rows; with `most`, of so many classes drawn at random."""
    columns = range(len(knowledge.classes))
    if most is not None and len(columns) > most:
        columns = np.random.default_rng(0).permutation(len(columns))[:most].tolist()
    for column in columns:
        entry = knowledge.classes[column]
        if len(entry.texts) < 2 or not entry.examples:
            continue
        queries = entry.vectors[: len(entry.examples)]  # [K, d]
        scores = model.cosines(queries, knowledge)  # [K, C]
        scores[:, column] = -torch.inf
        others, places = scores.max(dim=1)
        for row in range(len(entry.examples)):
            own = model.without(entry, row, queries[row : row + 1], knowledge.name_weight)
            alone = len(knowledge.classes) < 2
            yield LeftOut(entry, row, own, float(others[row]), -1 if alone else int(places[row]))

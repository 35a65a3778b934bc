"""Small all-class tasks of many sizes, drawn from one group of classes: what a head is calibrated on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dmin.data import Corpus

QUERIES = 80  # at most, in a task; as many again from classes that are left out
TEXTS = 24  # of a class that are encoded, at most
LEAST = 3  # classes, below which there is no task
_ROOM = 0.75  # of the classes of a group take part; the rest play the unknown

Encode = Callable[[Sequence[str]], Tensor]


@dataclass(frozen=True)
class Task:
    """Vectors of a task: what belongs, with labels, and what belongs nowhere."""

    support: Tensor  # [C, K, d]
    names: Tensor  # [C, 1, d]
    query: Tensor  # [L, d]
    labels: Tensor  # [L]
    strangers: Tensor  # [M, d], of other classes


class TaskPool:
    """Draws tasks from some classes, by seed.

    Args:
        corpus: the texts.
        classes: the classes; those with fewer than four texts are left out.
        encode: texts -> vectors [n, d].
        seed: of the texts and tasks.
    """

    def __init__(self, corpus: Corpus, classes: Sequence[str], encode: Encode, seed: int) -> None:
        self.random = np.random.default_rng([seed, 7])
        kept = [label for label in classes if len(corpus.by_class[label]) >= 4]
        rows = {label: self.random.permutation(corpus.by_class[label])[:TEXTS].tolist() for label in kept}
        vectors = encode([corpus.texts[row] for label in kept for row in rows[label]]) if kept else torch.empty(0, 0)
        parts = vectors.split([len(rows[label]) for label in kept])  # type: ignore[no-untyped-call]
        self.vectors: dict[str, Tensor] = dict(zip(kept, parts, strict=True))  # [texts, d] of each class
        names = encode([corpus.name_of(label) for label in kept]) if kept else vectors
        self.names: dict[str, Tensor] = dict(zip(kept, names, strict=True))
        self.groups: list[list[str]] = []
        by_set: dict[str, list[str]] = {}
        for label in kept:
            by_set.setdefault(corpus.origin.get(label, ""), []).append(label)
        # Classes of each data set and, where several are joined, of all together.
        for group in [*by_set.values(), *([kept] if len(by_set) > 1 else [])]:
            if len(group) >= LEAST:
                self.groups.append(group)

    def draw(self, sizes: Sequence[int], shots: Sequence[int], times: int) -> list[Task]:
        """Tasks of every size and shot, from every group; sizes beyond a group's are cut to it."""
        return [
            self._task(group, size, shot)
            for group in self.groups
            for size in sorted({min(size, max(2, round(_ROOM * len(group)))) for size in sizes})
            for shot in shots
            for _ in range(times)
        ]

    def _task(self, group: Sequence[str], size: int, shot: int) -> Task:
        order = [group[index] for index in self.random.permutation(len(group))]
        chosen, others = order[:size], order[size:]
        each = max(1, QUERIES // size)
        support, query, labels = [], [], []
        for number, label in enumerate(chosen):
            rows = self.vectors[label][torch.from_numpy(self.random.permutation(len(self.vectors[label])))]
            cut = min(shot, len(rows) - 1)
            support.append(rows[torch.arange(shot) % cut])  # a class with too few texts shows some twice
            query.append(rows[cut : cut + each])
            labels += [number] * len(query[-1])
        pool = torch.cat([self.vectors[label] for label in others])
        strange = self.random.permutation(len(pool))[: len(labels)]
        return Task(
            torch.stack(support),
            torch.stack([self.names[label] for label in chosen]).unsqueeze(1),
            torch.cat(query),
            torch.tensor(labels),
            pool[torch.from_numpy(strange)],
        )

"""The tasks that a head is calibrated on: few-shot tasks of many sizes, each with queries of known and unknown classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dmin.data import Corpus

QUERIES = 80  # at most, in a task; as many again from unknown classes
TEXTS = 24  # per class that are encoded, at most
LEAST = 3  # classes in a group; of fewer no task is drawn
_KNOWN = 0.75  # of a group's classes are known in a task, at most; the others are unknown

Encode = Callable[[Sequence[str]], Tensor]


@dataclass(frozen=True)
class CalibrationTask:
    """Vectors of a task: support, queries of its classes with labels, and queries of unknown classes."""

    support: Tensor  # [C, K, d]
    names: Tensor  # [C, 1, d]
    query: Tensor  # [L, d]
    labels: Tensor  # [L]
    unknown: Tensor  # [M, d], of other classes


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

    def draw(self, sizes: Sequence[int], shots: Sequence[int], times: int) -> list[CalibrationTask]:
        """Tasks of every size and shot, from every group; sizes beyond a group's are cut to it."""
        return [
            self._task(group, size, shot)
            for group in self.groups
            for size in sorted({min(size, max(2, round(_KNOWN * len(group)))) for size in sizes})
            for shot in shots
            for _ in range(times)
        ]

    def _task(self, group: Sequence[str], size: int, shot: int) -> CalibrationTask:
        order = [group[index] for index in self.random.permutation(len(group))]
        chosen, others = order[:size], order[size:]
        each = max(1, QUERIES // size)
        support, query, labels = [], [], []
        for number, label in enumerate(chosen):
            rows = self.vectors[label][torch.from_numpy(self.random.permutation(len(self.vectors[label])))]
            cut = min(shot, len(rows) - 1)
            support.append(rows[torch.arange(shot) % cut])  # a class with too few texts repeats some
            query.append(rows[cut : cut + each])
            labels += [number] * len(query[-1])
        pool = torch.cat([self.vectors[label] for label in others])
        drawn = self.random.permutation(len(pool))[: len(labels)]
        return CalibrationTask(
            torch.stack(support),
            torch.stack([self.names[label] for label in chosen]).unsqueeze(1),
            torch.cat(query),
            torch.tensor(labels),
            pool[torch.from_numpy(drawn)],
        )

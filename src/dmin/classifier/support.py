"""What a classifier knows: classes with their examples, as one value that is replaced, never changed.

A reader that took a snapshot sees all of it or none of a later change, so threads need no lock to predict.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class ClassSupport:
    """One class: its texts, their vectors, and what the method makes of each on its own."""

    label: Hashable
    texts: tuple[str, ...]  # the examples, then the name or description if it takes part
    named: bool  # is the last row the name?
    vectors: Tensor  # [K, d]
    prepared: Tensor  # [K, d]

    def weights(self, name_weight: float) -> Tensor:
        """What each row counts, [K]: 1, and the name its own weight."""
        counts = torch.ones(len(self.texts), device=self.prepared.device)
        if self.named:
            counts[-1] = name_weight
        return counts

    @property
    def examples(self) -> tuple[str, ...]:
        """The examples without the name."""
        return self.texts[:-1] if self.named else self.texts


@dataclass(frozen=True)
class Bucket:
    """Classes of like size, padded to the largest: prepared [C, K, d], mask and weights [C, K], their columns [C]."""

    prepared: Tensor
    mask: Tensor
    weights: Tensor
    columns: Tensor


@dataclass(frozen=True)
class Knowledge:
    """All classes, in the order of the columns."""

    classes: tuple[ClassSupport, ...] = ()
    name_weight: float = 1.0  # how many examples a name is worth

    @property
    def width(self) -> int | None:
        """The width of its vectors, if it has any."""
        return self.classes[0].vectors.shape[1] if self.classes else None

    @property
    def mean_size(self) -> float:
        """Examples a class, on the average."""
        return sum(len(entry.examples) for entry in self.classes) / max(1, len(self.classes))

    @property
    def labels(self) -> list[Hashable]:
        """The labels in the order of the columns."""
        return [entry.label for entry in self.classes]

    @cached_property
    def by_label(self) -> Mapping[Hashable, ClassSupport]:
        """Classes by label."""
        return {entry.label: entry for entry in self.classes}

    @cached_property
    def buckets(self) -> Sequence[Bucket]:
        """Classes grouped by size, so that one class of hundreds does not pad all the others."""
        groups: dict[int, list[int]] = {}
        for column, entry in enumerate(self.classes):
            size = len(entry.texts)
            groups.setdefault(next((b for b in BUCKETS if b >= size), size), []).append(column)
        return [self._bucket(columns) for columns in groups.values()]

    def replaced(self, entries: Sequence[ClassSupport]) -> Knowledge:
        """With these classes added, or put in the place of those of the same label; the others stay the same objects."""
        new = {entry.label: entry for entry in entries}
        kept = [new.pop(entry.label, entry) for entry in self.classes]
        return replace(self, classes=(*kept, *new.values()))

    def without(self, label: Hashable) -> Knowledge:
        """With one class less."""
        return replace(self, classes=tuple(entry for entry in self.classes if entry.label != label))

    def _bucket(self, columns: Sequence[int]) -> Bucket:
        members = [self.classes[column] for column in columns]
        rows = [entry.prepared for entry in members]
        prepared = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)  # [C, K, d]
        sizes = torch.tensor([len(row) for row in rows], device=prepared.device)
        mask = torch.arange(prepared.shape[1], device=prepared.device) < sizes.unsqueeze(1)
        counts = [entry.weights(self.name_weight) for entry in members]
        weights = torch.nn.utils.rnn.pad_sequence(counts, batch_first=True)  # [C, K]
        return Bucket(prepared, mask, weights, torch.tensor(columns, device=prepared.device))

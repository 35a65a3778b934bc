"""The classes of a classifier with their examples and vectors, as one value that is replaced, never changed.

A row is one example of a class, or its name where that takes part. Classes of like size are scored together, in blocks.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dmin.classifier.arrays import Array, computing, like, padded, take
from dmin.classifier.layered import Layered
from dmin.classifier.scorers import Scorer

# Sizes that classes are padded to, and how many rows are scored at once: few enough that all tensors of a routing iteration
# stay in the processor's cache, many enough that starting an operation costs little.
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
BLOCK_ROWS = 320


@dataclass(frozen=True)
class ClassSupport:
    """One class: its rows as texts, as vectors, and as the method prepares each on its own."""

    label: Hashable
    texts: tuple[str, ...]  # the examples, then the name or description if it takes part
    named: bool  # is the last row the name?
    vectors: Array  # [K, d]
    prepared: Array  # [K, d]

    def weights(self, name_weight: float) -> Array:
        """The weight of each row, [K]: 1, and of the name `name_weight`."""
        return like(self.row_weights(name_weight), self.prepared)

    def row_weights(self, name_weight: float) -> np.ndarray[Any, np.dtype[np.float32]]:
        """`weights`, always of numpy."""
        counts = np.ones(len(self.texts), np.float32)
        if self.named:
            counts[-1] = name_weight
        return counts

    @property
    def examples(self) -> tuple[str, ...]:
        """The examples without the name."""
        return self.texts[:-1] if self.named else self.texts

    def without_row(self, row: int) -> ClassSupport:
        """The class with one row less."""
        kept = [index for index in range(len(self.texts)) if index != row]
        texts = tuple(self.texts[index] for index in kept)
        return replace(self, texts=texts, vectors=take(self.vectors, kept), prepared=take(self.prepared, kept))


class Block:
    """Some classes of like size, scored together; their support side is computed once and kept."""

    def __init__(self, entries: tuple[ClassSupport, ...]) -> None:
        self.entries = entries
        self._side: tuple[Scorer, float, Any] | None = None

    def side(self, scorer: Scorer, name_weight: float) -> Any:
        """`scorer.support_side` of its classes. Two threads that come first both compute it, with equal results."""
        kept = self._side
        if kept is None or kept[0] is not scorer or kept[1] != name_weight:
            kept = self._side = (scorer, name_weight, self._make_side(scorer, name_weight))
        return kept[2]

    def _make_side(self, scorer: Scorer, name_weight: float) -> Any:
        prepared = padded([entry.prepared for entry in self.entries])  # [C, K, d]
        weights = padded([entry.row_weights(name_weight) for entry in self.entries])  # [C, K]
        sizes = np.array([len(entry.texts) for entry in self.entries])
        mask = np.arange(prepared.shape[1]) < sizes[:, None]  # [C, K]
        given = None if mask.all() else like(mask, prepared)
        with computing(prepared):
            return scorer.support_side(prepared, given, None if (weights == 1).all() else like(weights, prepared))


def padded_size(entry: ClassSupport) -> int:
    """The rows a class is padded to, at most."""
    return next((size for size in SIZES if size >= len(entry.texts)), len(entry.texts))


@dataclass(frozen=True)
class Knowledge:
    """All classes, in the order of the columns."""

    classes: tuple[ClassSupport, ...] = ()
    name_weight: float = 1.0  # how many examples a name is worth
    earlier: tuple[Block, ...] = field(default=(), repr=False)  # blocks before the last change: most of them are reused

    @property
    def width(self) -> int | None:
        """The width of its vectors, if it has any."""
        return self.classes[0].vectors.shape[1] if self.classes else None

    @cached_property
    def example_count(self) -> int:
        """Examples of all classes."""
        return sum(len(entry.examples) for entry in self.classes)

    @property
    def mean_size(self) -> float:
        """Examples per class, on average."""
        return self.example_count / max(1, len(self.classes))

    @cached_property
    def labels(self) -> list[Hashable]:
        """The labels in the order of the columns."""
        return [entry.label for entry in self.classes]

    @cached_property
    def by_label(self) -> Layered[Hashable, ClassSupport]:
        """Classes by label."""
        return Layered({entry.label: entry for entry in self.classes})

    @cached_property
    def owners(self) -> Layered[str, Hashable]:
        """The class of each example, the last one where there are several."""
        return Layered({text: entry.label for entry in self.classes for text in entry.examples})

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All classes in blocks of like size. A block none of whose classes changed is the one that was there before."""
        here = {id(entry) for entry in self.classes}
        groups = [[entry for entry in block.entries if id(entry) in here] for block in self.earlier]
        if len(groups) > 4 + 2 * sum(padded_size(entry) for entry in self.classes) / BLOCK_ROWS:
            groups = []  # many classes were removed: too many blocks are nearly empty
        placed = {id(entry) for group in groups for entry in group}
        last = {padded_size(group[0]): group for group in groups if group}  # where a class of each size may find room
        for entry in self.classes:
            if id(entry) in placed:
                continue
            size = padded_size(entry)
            if size not in last or (len(last[size]) + 1) * size > BLOCK_ROWS:
                last[size] = []
                groups.append(last[size])
            last[size].append(entry)
        known = {tuple(map(id, block.entries)): block for block in self.earlier}
        return tuple(known.get(tuple(map(id, group))) or Block(tuple(group)) for group in groups if group)

    @cached_property
    def order(self) -> list[int] | None:
        """Where each class stands among the classes of all blocks, [C]; None where they stand in order."""
        stands = {id(entry): at for at, entry in enumerate(entry for block in self.blocks for entry in block.entries)}
        places = [stands[id(entry)] for entry in self.classes]
        return None if places == sorted(places) else places

    @cached_property
    def whole(self) -> Block:
        """All classes in one block, for methods whose scores depend on all of them."""
        return Block(self.classes)

    def replaced(self, entries: Sequence[ClassSupport]) -> Knowledge:
        """With these classes added, or put in the place of those of the same label; the others stay the same objects."""
        new = {entry.label: entry for entry in entries}
        earlier = self.__dict__.get("blocks", self.earlier)
        if any(label in self.by_label for label in new):
            kept = [new.pop(entry.label, entry) for entry in self.classes]
            return replace(self, classes=(*kept, *new.values()), earlier=earlier)
        found = replace(self, classes=(*self.classes, *new.values()), earlier=earlier)
        # What is known already is carried over: to make it again is slow with many thousands of classes.
        found.__dict__["by_label"] = self.by_label.extended(new)
        if "example_count" in self.__dict__:
            found.__dict__["example_count"] = self.example_count + sum(len(entry.examples) for entry in new.values())
        if "owners" in self.__dict__:
            added = {text: entry.label for entry in new.values() for text in entry.examples}
            found.__dict__["owners"] = self.owners.extended(added)
        return found

    def without(self, label: Hashable) -> Knowledge:
        """With one class less."""
        kept = tuple(entry for entry in self.classes if entry.label != label)
        return replace(self, classes=kept, earlier=self.__dict__.get("blocks", self.earlier))

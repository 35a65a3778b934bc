"""Class splits: disjoint classes for training, validation and test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from dmin.errors import DataError
from dmin.files import check_document, read_json, short

PARTS = ("train", "valid", "test")
STORED_SPLITS = Path(__file__).parent / "class_splits"  # of public sets, names only; reproduce/make_splits.py made them
DEFAULT_FRACTIONS = (0.6, 0.15, 0.25)


@dataclass(frozen=True)
class ClassSplit:
    """Disjoint classes for training, validation and test."""

    train: tuple[str, ...]
    valid: tuple[str, ...]
    test: tuple[str, ...]

    def part(self, name: str) -> tuple[str, ...]:
        """The classes of "train", "valid" or "test"."""
        if name not in PARTS:
            raise DataError(f"unknown part {name!r}: train, valid or test")
        classes: tuple[str, ...] = getattr(self, name)
        return classes

    def check(self, name: str, classes: Sequence[str]) -> None:
        """Raise a `DataError` when a class is unknown or stands in two parts."""
        listed = [*self.train, *self.valid, *self.test]
        unknown = sorted(set(listed) - set(classes))
        if unknown:
            raise DataError(f"class split {name!r} names classes that have no texts: {', '.join(unknown[:5])}")
        if len(set(listed)) < len(listed):
            twice = sorted({label for label in listed if listed.count(label) > 1})
            raise DataError(f"class split {name!r} has classes in two parts: {', '.join(twice[:5])}")


def seeded_split(classes: Sequence[str], seed: int, sizes: Sequence[int] | None = None) -> ClassSplit:
    """Shuffle the classes by `seed` and cut them into train / valid / test of the given sizes.

    Without sizes, 60 % / 15 % / 25 %. The classes are sorted first, so the order of a file does not matter.
    """
    total = len(classes)
    if seed < 0:
        raise DataError(f"split seed {seed}: a whole number from 0 up is needed")
    if sizes is None:
        valid, test = round(total * DEFAULT_FRACTIONS[1]), round(total * DEFAULT_FRACTIONS[2])
        sizes = (total - valid - test, valid, test)
    if len(sizes) != 3 or min(sizes) < 0 or sum(sizes) > total:
        raise DataError(f"split sizes {'/'.join(map(str, sizes))} do not fit {total} classes: give train/valid/test")
    order = np.random.default_rng(seed).permutation(total)
    names = np.array(sorted(classes), dtype=object)[order].tolist()
    train, valid = sizes[0], sizes[0] + sizes[1]
    return ClassSplit(tuple(names[:train]), tuple(names[train:valid]), tuple(names[valid : valid + sizes[2]]))


class SplitDocument(BaseModel):
    """One class split of `class_splits.json`; other keys, like notes, are ignored."""

    model_config = ConfigDict(strict=True)

    train: list[str | int]
    valid: list[str | int]
    test: list[str | int]


def read_splits(path: Path) -> dict[str, ClassSplit]:
    """Read `{name: {train: [...], valid: [...], test: [...]}}` from JSON."""
    stored = read_json(path)
    if not isinstance(stored, Mapping):
        raise DataError(f"{path}: an object of named splits is needed")
    splits = {}
    for name, parts in stored.items():
        if not isinstance(parts, Mapping) or set(PARTS) - set(parts):
            raise DataError(f"{path}: split {short(name)} needs the lists train, valid and test")
        found = check_document(parts, SplitDocument, f"{path}, split {short(name)}")
        splits[str(name)] = ClassSplit(*(tuple(map(str, getattr(found, part))) for part in PARTS))
    return splits


def stored_splits(name: str, classes: Iterable[str]) -> dict[str, ClassSplit]:
    """The class splits that the package has for a named set; none when the set's classes have other names here."""
    path = STORED_SPLITS / f"{name}.json"
    if not path.is_file():
        return {}
    splits, known = read_splits(path), set(classes)
    listed = {label for split in splits.values() for part in PARTS for label in split.part(part)}
    return splits if listed <= known else {}

"""Class splits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmin.data import ClassSplit, seeded_split
from dmin.data.splits import read_splits
from dmin.errors import DataError

CLASSES = [f"c{number}" for number in range(20)]


def test_a_seed_names_a_split_whatever_the_order_of_the_file() -> None:
    split = seeded_split(CLASSES, 3)
    assert split == seeded_split(CLASSES[::-1], 3) != seeded_split(CLASSES, 4)
    assert sorted([*split.train, *split.valid, *split.test]) == sorted(CLASSES)
    assert (len(split.train), len(split.valid), len(split.test)) == (12, 3, 5)


def test_sizes_are_kept() -> None:
    split = seeded_split(CLASSES, 0, (10, 4, 5))
    assert (len(split.train), len(split.valid), len(split.test)) == (10, 4, 5)
    assert len({*split.train, *split.valid, *split.test}) == 19
    for sizes in ((10, 4, 7), (1, 2), (30, -5, 1)):
        with pytest.raises(DataError, match="do not fit 20 classes"):
            seeded_split(CLASSES, 0, sizes)


def test_parts_must_be_disjoint_and_known() -> None:
    with pytest.raises(DataError, match="two parts: c1"):
        ClassSplit(("c1",), ("c2",), ("c1",)).check("mine", CLASSES)
    with pytest.raises(DataError, match="no texts: c99"):
        ClassSplit(("c1",), ("c99",), ()).check("mine", CLASSES)
    with pytest.raises(DataError, match="unknown part"):
        ClassSplit(("c1",), ("c2",), ("c3",)).part("dev")


@pytest.mark.parametrize("content", [[], {"a": {"train": []}}, {"a": 3}])
def test_broken_split_files(tmp_path: Path, content: object) -> None:
    path = tmp_path / "class_splits.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="class_splits.json"):
        read_splits(path)

"""Make the class splits `fair-01`, `fair-02`, ... of the nine public sets: names of classes only, no texts.

    DMIN_DATA=... python -m reproduce.make_splits

They allow a test that published splits do not: the validation classes are one pool per set and never test classes, so a
setting may be chosen on them for all splits; and in sets of 35 classes or more no class is a test class of two splits.
The other classes of a set stand in a seeded order on a circle, and each split takes the next ones as its test classes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from dmin.data import load_corpus
from dmin.data.splits import STORED_SPLITS, ClassSplit
from dmin.files import write_atomic

SEED = 2020
# set -> (validation classes, splits, test classes of each). Ten test classes allow 10-way episodes; the two sets of 20
# classes are too small for those.
SIZES = {
    "banking77": (17, 5, 12),
    "clinc150": (25, 5, 25),
    "hwu64": (12, 4, 13),
    "liu54": (10, 4, 11),
    "stackoverflow": (5, 3, 5),
    "debian": (10, 3, 11),
    "goemotions": (6, 3, 10),
    "fortunes": (9, 3, 10),
    "news20": (5, 3, 5),
}


def make(classes: Sequence[str], valid: int, splits: int, test: int, seed: int = SEED) -> dict[str, ClassSplit]:
    """Splits by name, of classes in any order."""
    order = np.random.default_rng(seed).permutation(len(classes))
    names = np.array(sorted(classes), dtype=object)[order].tolist()
    pool, others = tuple(names[:valid]), names[valid:]
    made = {}
    for number in range(splits):
        first = number * len(others) // splits
        turned = [*others[first:], *others[:first]]
        made[f"fair-{number + 1:02d}"] = ClassSplit(tuple(turned[test:]), pool, tuple(turned[:test]))
    return made


def to_json(splits: dict[str, ClassSplit]) -> str:
    """As `class_splits.json`, one line per part."""
    parts = [
        f'  "{name}": {{\n'
        + ",\n".join(f'    "{part}": {json.dumps(sorted(split.part(part)))}' for part in ("train", "valid", "test"))
        + "\n  }"
        for name, split in splits.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    for name, sizes in SIZES.items():
        write_atomic(STORED_SPLITS / f"{name}.json", to_json(make(load_corpus(name).classes, *sizes)))
        print(f"{name}: {sizes[1]} splits")


if __name__ == "__main__":
    main()

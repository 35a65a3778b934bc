"""Data sets, uneven pools and results that the scripts of `labelling.py` share."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dmin.data import load_corpus
from dmin.data.labelled import read_corpus
from dmin.labelling.vectors import centred, encode_pile, mean_direction

SETS = ("banking77", "clinc150", "hwu64", "liu54", "stackoverflow", "debian", "goemotions", "fortunes", "news20")
EXTRA = "starter"  # built in; forecasts are checked on it, and nothing is chosen on it
PER_CLASS, TEST, MOST = 80, 30, 6000  # pool texts per class, test texts per class, pool texts that are encoded
SEEDS, TUNING_SEEDS = range(10), range(100, 103)


def generator_of(*key: object) -> np.random.Generator:
    """A generator that depends on its names alone."""
    return np.random.default_rng(int(hashlib.sha256("|".join(map(str, key)).encode()).hexdigest()[:15], 16))


class World:
    """A data set: the pool and test rows of each class, and the vectors of both."""

    def __init__(self, name: str) -> None:
        if name == EXTRA:
            corpus = load_corpus(name)
        else:
            corpus = read_corpus(Path(os.environ["DMIN_DATA"]) / name / "texts.jsonl", name=name)
        self.name, self.classes = name, sorted(corpus.by_class)
        per_class = min(PER_CLASS, MOST // len(self.classes))
        self.texts: list[str] = []
        self.labels: list[int] = []
        self.pool: list[Any] = []
        self.test: list[Any] = []
        seen: set[str] = set()
        for number, label in enumerate(self.classes):
            texts = dict.fromkeys(corpus.texts[row] for row in corpus.by_class[label])
            texts = [text for text in texts if text not in seen]
            seen.update(texts)
            order = generator_of(name, label, "order").permutation(len(texts))[: TEST + per_class]
            tests = min(TEST, len(order) // 2)
            rows = np.arange(len(self.texts), len(self.texts) + len(order))
            self.texts += [texts[place] for place in order]
            self.labels += [number] * len(order)
            self.test.append(rows[:tests])
            self.pool.append(rows[tests:])
        self.vectors = encode_pile(self.texts)  # [n, d], by the default encoder and its cache

    def rows(self, seed: int) -> Any:
        """The rows of an uneven pool [n]."""
        generator = generator_of(self.name, "pool", seed)
        rows = []
        for pool in self.pool:
            kept = max(3, round(len(pool) * 10 ** -generator.random()))
            rows.append(generator.permutation(pool)[:kept])
        return generator.permutation(np.concatenate(rows))

    def draw(self, seed: int) -> tuple[Any, Any, Any, Any]:
        """Vectors and labels of an uneven pool and of the test texts, centred with the pool's mean."""
        chosen, test = self.rows(seed), np.concatenate(self.test)
        mean, labels = mean_direction(self.vectors[chosen]), np.array(self.labels)
        return centred(self.vectors[chosen], mean), labels[chosen], centred(self.vectors[test], mean), labels[test]


@dataclass
class Worlds:
    """The data sets, opened one at a time."""

    names: tuple[str, ...]
    seeds: range = SEEDS
    opened: World | None = None

    def open(self, name: str) -> World:
        """The data set of this name; the last one stays open."""
        if self.opened is None or self.opened.name != name:
            self.opened = World(name)
        return self.opened


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The results so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def append(path: Path, row: dict[str, Any]) -> None:
    """Add one result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])

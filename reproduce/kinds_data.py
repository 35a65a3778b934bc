"""The nine sets of `kinds.py`: which texts are examples, development and test, which draws, and their vectors.

Per class at most 130 texts, in a seeded order: the first (at most 50) are the test texts of the first look, the others are
the pool that examples and development tasks are drawn from. Texts beyond these 130, at most 30 per class, are the fresh
texts that the table is made of.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dmin.data import load_corpus
from dmin.data.labels import name_text

SETS = ("banking77", "clinc150", "hwu64", "liu54", "stackoverflow", "debian", "goemotions", "fortunes", "news20")
# Whose statistics are shipped: CC BY and BSD. stackoverflow is share-alike, and many descriptions of debian are copyleft.
OPEN = ("banking77", "clinc150", "hwu64", "liu54", "goemotions", "fortunes", "news20")
MOST, TEST, FRESH = 130, 50, 30
BLOCK = 1000  # texts that are encoded before they are kept: an interrupted run goes on where it stood
SHOTS = (1, 5, 10)


def data_folder() -> Path:
    return Path(os.environ["DMIN_DATA"])


def generator(*key: object) -> np.random.Generator:
    """A generator seeded by names."""
    return np.random.default_rng(int(hashlib.sha256("|".join(map(str, key)).encode()).hexdigest()[:15], 16))


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def labelled_texts(name: str) -> list[tuple[str, str]]:
    """(text, class) of a set; "starter" comes with the package."""
    if name == "starter":
        corpus = load_corpus(name)
        return list(zip(corpus.texts, corpus.labels, strict=True))
    return [(row["text"], row["label"]) for row in read_lines(data_folder() / name / "texts.jsonl")]


class KindSet:
    """One set: its classes, texts and parts."""

    def __init__(self, name: str) -> None:
        self.name = name
        by_class: dict[str, list[str]] = {}
        seen: set[str] = set()
        for text, label in labelled_texts(name):
            if text not in seen:
                seen.add(text)
                by_class.setdefault(label, []).append(text)
        self.classes = sorted(by_class)
        self.texts: list[str] = []
        labels: list[int] = []
        self.test: list[Any] = []  # rows of each class
        self.pool: list[Any] = []
        self._beyond: list[list[str]] = []
        for column, label in enumerate(self.classes):
            texts = by_class[label]
            generator(name, "cap", label).shuffle(texts)
            texts, beyond = texts[:MOST], texts[MOST:]
            tested, start = min(TEST, 6 if name == "starter" else len(texts) // 2), len(self.texts)
            self.texts += texts
            labels += [column] * len(texts)
            self.test.append(np.arange(start, start + tested))
            self.pool.append(np.arange(start + tested, start + len(texts)))
            self._beyond.append(beyond)
        self.labels = np.array(labels)
        self.names = [name_text(label) for label in self.classes]

    @cached_property
    def boards(self) -> dict[str, list[tuple[str, int]]]:
        """Examples and test texts of the public leaderboard, where the set has one."""
        folder = data_folder() / self.name / "leaderboard"
        parts = ("train_5", "train_10", "test") if folder.is_dir() else ()
        return {
            part: [(row["text"], self.classes.index(row["label"])) for row in read_lines(folder / f"{part}.jsonl")]
            for part in parts
        }

    @cached_property
    def fresh(self) -> tuple[list[str], Any]:
        """(texts, labels) that no choice was made on."""
        used = {*self.texts, *self.names, *(text for part in self.boards.values() for text, _ in part)}
        texts: list[str] = []
        labels: list[int] = []
        for column, beyond in enumerate(self._beyond):
            kept = [text for text in beyond if text not in used][:FRESH]
            texts += kept
            labels += [column] * len(kept)
        return texts, np.array(labels)

    def draw(self, shot: int, number: int) -> Any:
        """Rows of the examples of a draw, [C, shot]; a larger draw extends a smaller one."""
        return np.stack([
            generator(self.name, "draw", number, label).permutation(pool)[:shot]
            for label, pool in zip(self.classes, self.pool, strict=True)
        ])  # fmt: skip

    def development(self) -> tuple[list[Any], list[Any]]:
        """(queries, examples): rows of each class, both from the pool."""
        queries, examples = [], []
        for label, pool in zip(self.classes, self.pool, strict=True):
            order = generator(self.name, "dev", label).permutation(pool)
            size = max(1, min(30, len(order) - 10))
            queries.append(order[:size])
            examples.append(order[size:])
        return queries, examples


class Vectors:
    """Vectors of texts, made once per encoder and kept in a folder."""

    def __init__(self, folder: Path, encoder: str) -> None:
        self.folder, self.encoder = folder / encoder, encoder
        self._known: dict[str, Any] = {}
        for path in sorted(self.folder.glob("*.json")):
            texts = json.loads(path.read_text(encoding="utf-8"))
            self._known.update(zip(texts, np.load(path.with_suffix(".npy")), strict=True))
        self._open: Any = None

    def __call__(self, texts: Sequence[str]) -> Any:
        """Vectors [n, d]; new texts are encoded and kept."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            if self._open is None:
                self._open = open_named(self.encoder)
            for at in range(0, len(new), BLOCK):
                block = new[at : at + BLOCK]
                found = self._open.encode(block)
                self._known.update(zip(block, found, strict=True))
                self._keep(block, found)
        return np.stack([self._known[text] for text in texts])

    def _keep(self, texts: Sequence[str], vectors: Any) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
        np.save(self.folder / f"{name}.npy", vectors)
        (self.folder / f"{name}.json").write_text(json.dumps(list(texts)), encoding="utf-8")


def open_named(name: str) -> Any:
    """An encoder by name; "minilm-layers" is minilm with two layers."""
    from dmin.encoder import open_encoder

    if name == "minilm-layers":
        return open_encoder("minilm", pooling="layers")
    return open_encoder(name)


def parts_of(name: str) -> set[str]:
    """The sets that are left out where one is measured: hwu64 and liu54 share texts."""
    return {"hwu64", "liu54"} if name in ("hwu64", "liu54") else {name}

"""The encoders by name on nine sets: logistic regression on their vectors, and what windows give on long texts.

    DMIN_DATA=... python reproduce/encoders.py kinds       # the table of kinds
    DMIN_DATA=... python reproduce/encoders.py windows     # news20 cut and in windows

Names of encoders after that make the columns, or rows, of these alone.

Of each class 15 texts are the pool of the examples and 10 others the test texts, drawn by seed 0; all classes at once, five
examples and the class's name, five draws. Logistic regression has C=10 on vectors of norm 1, where side by side each
encoder's part has norm 1. Encoders read 256 tokens; only the second table reads more. Nothing was chosen on these figures.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from dmin.data import Corpus
from dmin.data.labels import name_text
from dmin.data.readers import read_corpus
from dmin.encoder import TextEncoder, VectorCache, open_encoder
from dmin.encoder.text_encoder import FloatArray, unit

SETS = (
    "banking77", "clinc150", "hwu64", "liu54", "stackoverflow", "debian", "goemotions", "fortunes", "news20",
)  # fmt: skip
ENCODERS = ("bge-small", "minilm", "static", "bge-small+minilm")
POOL, TEST, EXAMPLES, DRAWS = 15, 10, 5, 5


class Part:
    """The texts of a set that take part: pool [C, 15], test [C, 10], names [C]."""

    def __init__(self, corpus: Corpus) -> None:
        draw = np.random.default_rng(0)
        self.pool, self.test, self.names = [], [], []
        for label in sorted(corpus.classes):
            texts = sorted({corpus.texts[row] for row in corpus.rows_of([label])})
            if len(texts) >= POOL + TEST:
                chosen = [texts[index] for index in draw.permutation(len(texts))[: POOL + TEST]]
                self.pool.append(chosen[:POOL])
                self.test.append(chosen[POOL:])
                self.names.append(name_text(label))

    def accuracy(self, encoder: TextEncoder) -> tuple[float, float, float]:
        """Mean accuracy over the draws, half its 95 % confidence interval, and seconds of processor time to encode."""
        start = time.process_time()
        count = len(self.names)
        texts = [text for part in (*self.pool, *self.test) for text in part] + self.names
        vectors = unit(VectorCache().encode(encoder, texts))  # [25 C + C, d]
        seconds = time.process_time() - start
        pool = vectors[: POOL * count].reshape(count, POOL, -1)
        test, names = vectors[POOL * count : -count], vectors[-count:]
        found = [self._draw(pool, test, names, seed) for seed in range(DRAWS)]
        half = 2.776 * np.std(found, ddof=1) / DRAWS**0.5  # t of 4 degrees of freedom
        return 100 * float(np.mean(found)), 100 * float(half), seconds

    def _draw(self, pool: FloatArray, test: FloatArray, names: FloatArray, seed: int) -> float:
        count = len(names)
        rows = np.stack([np.random.default_rng([seed, label]).permutation(POOL)[:EXAMPLES] for label in range(count)])
        examples = pool[np.arange(count)[:, None], rows]  # [C, K, d]
        train = np.concatenate([examples.reshape(count * EXAMPLES, -1), names])
        labels = np.concatenate([np.repeat(np.arange(count), EXAMPLES), np.arange(count)])
        model = LogisticRegression(C=10, max_iter=1000).fit(train, labels)
        return float((model.predict(test) == np.repeat(np.arange(count), TEST)).mean())


def kinds(data: Path, names: Sequence[str]) -> None:
    """A row per set, a column per encoder."""
    print("| set | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|", sep="\n", flush=True)
    encoders = [open_encoder(name, long_texts="cut", device="cpu") for name in names]
    for name in SETS:
        part = Part(read_corpus(data / name / "texts.jsonl"))
        found = [part.accuracy(encoder) for encoder in encoders]
        cells = [f"{accuracy:.1f} ± {half:.1f}" for accuracy, half, _ in found]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def windows(data: Path, names: Sequence[str]) -> None:
    """News posts cut and in windows."""
    part = Part(read_corpus(data / "news20" / "texts.jsonl"))
    print("| encoder | long texts | accuracy, % | processor time of encoding |", "|---" * 4 + "|", sep="\n", flush=True)
    for name in names:
        base = 0.0
        for reading in ("cut", "windows"):
            accuracy, half, seconds = part.accuracy(open_encoder(name, long_texts=reading, device="cpu"))
            base = base or seconds
            print(f"| {name} | {reading} | {accuracy:.1f} ± {half:.1f} | {seconds / base:.2f}x |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"kinds": kinds, "windows": windows}[sys.argv[1]](
        Path(os.environ["DMIN_DATA"]), sys.argv[2:] or (ENCODERS if sys.argv[1] == "kinds" else ENCODERS[:2])
    )

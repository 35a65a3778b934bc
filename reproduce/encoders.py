"""The encoders by name on nine sets, and what windows give on long texts.

    python -m reproduce.encoders kinds        # the default head on each encoder -> runs/kinds, encoders.md, docs
    python -m reproduce.encoders windows      # news20 cut and in windows, logistic regression

`kinds` takes the sets, draws and fresh texts of `kinds.py`: all classes at once; 1, 5 and 10 examples and the class's name;
three draws; spreads that never saw the set. `minilm` has two layers, as it has beside `bge-small`. `windows` takes of each
class 15 texts as the pool of the examples and 10 others as test texts, drawn by seed 0; five examples and the class's name,
five draws; logistic regression has C=10 on vectors of norm 1. Nothing was chosen on these figures. $DMIN_DATA must be set.
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

from dmin.adaptive import Spread
from dmin.data import Corpus
from dmin.data.labelled import read_corpus
from dmin.data.labels import name_text
from dmin.encoder import TextEncoder, VectorCache, open_encoder
from dmin.encoder.text_encoder import FloatArray, unit
from reproduce.kinds import SPREADS, accuracy, classifier_for, examples_of, vectors_of
from reproduce.kinds_constants import general_spread
from reproduce.kinds_data import OPEN, SETS, SHOTS, KindSet, parts_of
from reproduce.kinds_lines import grouped, lines_of, markdown, put_table, restart, write
from reproduce.kinds_tables import interval

HERE = Path(__file__).parent
# The name in tables, the vectors side by side, and texts per class that a spread is estimated on.
ENCODERS = {
    "bge-small": ("bge-small",), "minilm, two layers": ("minilm-layers",), "static": ("static",),
    "bge-small+minilm": ("bge-small", "minilm-layers"),
}  # fmt: skip
KIND_DRAWS = range(10, 13)
ABOUT_KINDS = """\
The default head on each encoder, all classes at once, with the classes' names; 1, 5 and 10 examples per class; accuracy
in % with 95 % confidence intervals over three draws, on the fresh texts of `reproduce/KINDS.md`, with spreads that
never saw the set (`python -m reproduce.encoders kinds`):"""
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


class Joined:
    """Kept vectors of encoders side by side, each of norm 1."""

    def __init__(self, names: Sequence[str]) -> None:
        self.parts = [vectors_of(name) for name in names]

    def __call__(self, texts: Sequence[str]) -> FloatArray:
        """Vectors [n, d]."""
        return np.concatenate([unit(part(texts)) for part in self.parts], axis=1)

    def spreads_without(self, name: str) -> tuple[Spread, ...]:
        """The spreads that never saw a set."""
        sets = [KindSet(other) for other in OPEN if other not in parts_of(name)]
        most = {folder: count for _, folder, count in SPREADS}
        return tuple(general_spread(part, sets, most[part.encoder]) for part in self.parts)


def file_of(title: str) -> str:
    """The file of an encoder's lines in runs/kinds."""
    return "encoders-" + title.replace(", ", "-").replace(" ", "-")


def kinds(names: Sequence[str]) -> None:
    """The default head on each encoder, with names."""
    for title in names or ENCODERS:
        kind = file_of(title)
        restart(kind, SETS)
        vectors = Joined(ENCODERS[title])
        for name in SETS:
            found = KindSet(name)
            classifier = classifier_for(vectors, vectors.spreads_without(name), None, use_names=True)
            for shot in SHOTS:
                for number in KIND_DRAWS:
                    classifier.fit(examples_of(found, found.draw(shot, number), named=True))
                    right = accuracy(classifier, *found.fresh)
                    write(kind, {"set": name, "shot": shot, "draw": number, "accuracy": right})
            print(title, name, flush=True)
    for page in (HERE / "encoders.md", HERE.parent / "docs" / "how-to" / "encoders.md"):
        put_table(page, "kinds", f"{ABOUT_KINDS}\n\n{kinds_table()}")


def kinds_table() -> str:
    """A row per set and number of examples, a column per encoder; the best in bold."""
    columns = {title: grouped(lines_of(file_of(title)), ("set", "shot")) for title in ENCODERS}
    rows = []
    for name in SETS:
        for shot in SHOTS:
            found = [[line["accuracy"] for line in group.get((name, shot), ())] for group in columns.values()]
            best = max(np.mean(values) for values in found if values)
            cells = [
                f"{np.mean(values):.1f} ± {interval(values):.1f}" if values else "not measured" for values in found
            ]
            marked = [f"**{cell}**" if values and np.mean(values) == best else cell
                      for cell, values in zip(cells, found, strict=True)]  # fmt: skip
            rows.append([name, str(shot), *marked])
    return markdown(["set", "per class", *(f"`{title}`" for title in ENCODERS)], rows)


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
    if sys.argv[1] == "kinds":
        kinds(sys.argv[2:])
    else:
        windows(Path(os.environ["DMIN_DATA"]), sys.argv[2:] or ("bge-small", "minilm"))

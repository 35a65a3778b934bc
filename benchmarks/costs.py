"""Milliseconds per text by number of classes, examples per class, length of text and texts at once: the default classifier.

Encoding (bge-small) and scoring (the adaptive head, on numpy) apart, fresh texts, medians of turns. The head is fitted on
random vectors, because its time does not depend on what they say; above 1,000 classes its logistic part is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Result, middle, short_texts, take_turns
from dmin.adaptive.fit import fit_head
from dmin.encoder import open_encoder
from dmin.encoder.text_encoder import TextEncoder
from dmin.model.adaptive_head import adaptive_setup
from dmin.threads import one_blas_thread

PICTURE = Path(__file__).with_name("costs.png")
CLASSES = (10, 30, 100, 300, 1000, 3000, 10_000)
EXAMPLES = (1, 2, 5, 10, 20, 50, 100)
WORDS = (8, 16, 32, 64, 128, 256)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
QUERIES, WIDTH, REPETITIONS = 64, 384, 5


def scoring(classes: int, examples: int) -> Callable[[int], object]:
    """Score queries against a head of so many classes."""
    random, setup = np.random.default_rng(0), adaptive_setup("bge-small", WIDTH)
    vectors = random.normal(size=(classes * examples, WIDTH)).astype(np.float32)
    head = fit_head(setup.recipe, setup.spreads_for(WIDTH), vectors, [examples] * classes, [False] * classes)
    query = head.view(random.normal(size=(QUERIES, WIDTH)).astype(np.float32))

    def score(_: int) -> object:
        with one_blas_thread():
            return head.scores(query, head.cosines(query))

    return score


def encoding(encoder: TextEncoder, words: int, count: int) -> Callable[[int], object]:
    """Encode so many fresh texts of so many words; 0 words: as short texts are."""
    if not words:
        return lambda turn: encoder.encode(short_texts(count, turn))

    def texts(turn: int) -> list[str]:
        found = [" ".join(short_texts(words, 1 + turn * count + number)).split() for number in range(count)]
        return [" ".join(own[:words]) for own in found]

    return lambda turn: encoder.encode(texts(turn))


def main() -> Result:
    """Four curves."""
    encoder = open_encoder("bge-small")
    curves = {
        "classes, of 5 examples": {n: scoring(n, 5) for n in CLASSES},
        "examples, of 100 classes": {n: scoring(100, n) for n in EXAMPLES},
        "words of a text": {n: encoding(encoder, n, 16) for n in WORDS},
        "short texts at once": {n: encoding(encoder, 0, n) for n in BATCHES},
    }
    sizes = {"words of a text": dict.fromkeys(WORDS, 16), "short texts at once": {n: n for n in BATCHES}}
    figures: dict[str, dict[str, float]] = {}
    lines = []
    for title, forms in curves.items():
        seconds = take_turns({str(n): form for n, form in forms.items()}, REPETITIONS)
        per_text = {n: 1000 * middle(v) / sizes.get(title, {}).get(int(n), QUERIES) for n, v in seconds.items()}
        figures[title] = per_text
        kind = "scoring" if title in list(curves)[:2] else "encoding"
        lines += ["", f"| {title} | " + " | ".join(per_text) + " |", "|---" * (len(per_text) + 1) + "|"]
        lines += [f"| {kind}, ms per text | " + " | ".join(f"{value:.3g}" for value in per_text.values()) + " |"]
    draw(figures)
    return Result([*lines, "", f"![What a text costs]({PICTURE.name})"], figures)


def draw(figures: dict[str, dict[str, float]]) -> None:
    """The four curves in one picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 4, figsize=(15, 3.4))
    for axis, (title, curve) in zip(axes, figures.items(), strict=True):
        axis.plot([int(n) for n in curve], list(curve.values()), marker="o", color="#1f77b4")
        axis.set(xscale="log", yscale="log", xlabel=title)
        axis.grid(True, which="major", alpha=0.3)
    axes[0].set_ylabel("scoring, ms per text")
    axes[2].set_ylabel("encoding, ms per text")
    figure.tight_layout()
    settings: dict[str, Any] = {"dpi": 110, "metadata": {"Software": None}}
    figure.savefig(PICTURE, **settings)
    pyplot.close(figure)


if __name__ == "__main__":
    print("\n".join(main().lines))

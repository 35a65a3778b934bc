"""Milliseconds per text by number of classes, examples per class, length of text and texts at once; torch, shipped head.

Encoding and scoring apart, fresh texts, medians of turns.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import Result, middle, short_texts, take_turns
from benchmarks.routing import WIDTH
from dmin.classifier.knowledge import ClassSupport, Knowledge
from dmin.classifier.scoring import Model
from dmin.encoder import Encoder
from dmin.model import load_model, shipped_head

PICTURE = Path(__file__).with_name("costs.png")
CLASSES = (10, 30, 100, 300, 1000, 3000, 10_000)
EXAMPLES = (1, 2, 5, 10, 20, 50, 100)
LENGTHS = (8, 16, 32, 64, 128, 256)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
QUERIES, REPETITIONS = 64, 5


def knowledge(model: Model, classes: int, examples: int) -> Knowledge:
    """Random vectors: the time does not depend on what they say."""
    vectors = torch.randn(classes, examples, WIDTH, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        prepared = model.method.prepare(vectors)
    texts = tuple(map(str, range(examples)))
    return Knowledge(tuple(ClassSupport(n, texts, False, vectors[n], prepared[n]) for n in range(classes)))


def main() -> Result:
    """Four curves."""
    trained = load_model(shipped_head(), device="cpu")
    model, encoder = Model(trained.method, None), trained.encoder
    query = torch.randn(QUERIES, WIDTH, generator=torch.Generator().manual_seed(1))

    def scoring(classes: int, examples: int) -> Callable[[int], object]:
        known = knowledge(model, classes, examples)
        return lambda _: model.cosines(query, known)

    curves = {
        "classes, of 5 examples": {n: scoring(n, 5) for n in CLASSES},
        "examples, of 100 classes": {n: scoring(100, n) for n in EXAMPLES},
        "tokens of a text": {n: _encoding(encoder, n, 16) for n in LENGTHS},
        "short texts at once": {n: _encoding(encoder, 0, n) for n in BATCHES},
    }
    sizes = {"tokens of a text": dict.fromkeys(LENGTHS, 16), "short texts at once": {n: n for n in BATCHES}}
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


def _encoding(encoder: Encoder, tokens: int, count: int) -> Callable[[int], object]:
    """Encode so many fresh texts of so many tokens; 0 tokens: as short texts are."""
    if not tokens:
        return lambda turn: encoder.encode(short_texts(count, turn))
    rows = [[101, *[2000 + (17 * n + 31 * at) % 20000 for at in range(tokens - 2)], 102] for n in range(count)]
    return lambda _: encoder.encode_ids(rows)


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

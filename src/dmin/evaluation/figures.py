"""Figures: confusion, learning curves, t-SNE, reliability, refusal; on plain matplotlib (no global state)."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from dmin.errors import printable
from dmin.evaluation.precision import PrecisionCurve, PrecisionPoint
from dmin.evaluation.quality import Reliability
from dmin.files import write_atomic

INK, ACCENT, PALE = "#16202b", "#0f766e", "#c2620c"
# What stands in a page takes the page's colours, which differ in light and dark; #b0b0b0 is matplotlib's grid.
_IN_PAGES = {
    INK: "var(--ink)", ACCENT: "var(--accent)", PALE: "var(--warn)", "#000000": "var(--ink)", "#b0b0b0": "var(--quiet)",
    "#ffffff": "var(--card)", "#cccccc": "var(--line)",
}  # fmt: skip


def confusion_figure(confusion: Mapping[tuple[str, str], int], title: str) -> Figure:
    """A heat map of answers by true class, in percent of the class's queries."""
    names = sorted({name for pair in confusion for name in pair})
    counts = np.zeros((len(names), len(names)))
    place = {name: index for index, name in enumerate(names)}
    for (true, answer), count in confusion.items():
        counts[place[true], place[answer]] = count
    rates = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    size = max(5.0, 0.32 * len(names) + 2.5)
    figure = Figure(figsize=(size, size), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(rates, cmap="Blues", vmin=0, vmax=100)
    shown = [plain_label(name) for name in names]
    axes.set_xticks(range(len(names)), shown, rotation=90, fontsize=8)
    axes.set_yticks(range(len(names)), shown, fontsize=8)
    axes.set_xlabel("answer")
    axes.set_ylabel("true class")
    axes.set_title(plain_label(title), fontsize=10)
    if len(names) <= 30:
        for row, column in zip(*np.nonzero(rates >= 1), strict=True):
            dark = rates[row, column] > 55
            axes.text(column, row, f"{rates[row, column]:.0f}", ha="center", va="center", fontsize=6,
                      color="white" if dark else INK)  # fmt: skip
    figure.colorbar(image, ax=axes, shrink=0.6, label="% of the class's queries")
    return figure


def curves_figure(metrics: Sequence[Mapping[str, Any]]) -> Figure:
    """Loss and accuracy over the updates of each stage, with the validations as points."""
    stages = sorted({int(line["stage"]) for line in metrics}) or [1]
    figure = Figure(figsize=(4.6 * len(stages), 3.4), layout="constrained")
    for column, stage in enumerate(stages):
        axes = figure.add_subplot(1, len(stages), column + 1)
        lines = [line for line in metrics if line["stage"] == stage]
        trained = [line for line in lines if "loss" in line]
        judged = [line for line in lines if "validation" in line]
        steps = [line["step"] for line in trained]
        axes.plot(steps, [100 * line["accuracy"] for line in trained], color=PALE, alpha=0.6, label="training accuracy")
        axes.plot([line["step"] for line in judged], [100 * line["validation"] for line in judged], "o-", color=ACCENT,
                  markersize=3, label="held-out texts" if stage == 1 else "validation classes")  # fmt: skip
        axes.set_title({1: "stage 1: base classes", 2: "stage 2: episodes"}.get(stage, f"stage {stage}"), fontsize=10)
        axes.set_xlabel("updates")
        axes.set_ylabel("accuracy, %")
        axes.grid(alpha=0.25)
        axes.legend(fontsize=8, loc="lower right")
        losses = axes.twinx()
        losses.plot(steps, [line["loss"] for line in trained], color=INK, alpha=0.35, linewidth=1)
        losses.set_ylabel("loss (grey)", fontsize=8)
        losses.set_ylim(bottom=0)
    return figure


def embedding_figure(halves: Sequence[tuple[str, Any, float]], classes: Sequence[str], labels: Sequence[int]) -> Figure:
    """Points [n, 2] coloured by class, side by side; each half with its title and silhouette."""
    figure = Figure(figsize=(9.6, 5.0), layout="constrained")
    colours = colormaps["tab20" if len(classes) > 10 else "tab10"]
    for column, (title, points, score) in enumerate(halves, 1):
        axes = figure.add_subplot(1, len(halves), column)
        for number, name in enumerate(classes):
            chosen = np.asarray(labels) == number
            axes.scatter(points[chosen, 0], points[chosen, 1], s=28, color=colours(number % 20),
                         label=plain_label(name) if column == 1 else None)  # fmt: skip
        axes.set_title(title, fontsize=10)
        axes.set_xlabel(f"silhouette {score:.3f}", fontsize=10)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.legend(fontsize=8, ncols=5, loc="outside lower center")
    return figure


def plain_label(name: object) -> str:
    """A name as matplotlib shows it letter by letter: a `$` begins no formula, a leading `_` hides no legend entry.

    Control characters are escaped, and what no font here can draw would only be a box.
    """
    text = printable(name).replace("$", r"\$")
    return "\u200b" + text if text.startswith("_") else text


def save_png(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, atomically."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    write_atomic(path, buffer.getvalue())


def svg_text(figure: Figure) -> str:
    """A figure as an SVG element that stands inside a page, in the page's colours; its ids are its own."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.id": None}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return re.sub("|".join(_IN_PAGES), lambda found: _IN_PAGES[found[0]], text)


def reliability_figure(before: Reliability, after: Reliability) -> Figure:
    """Accuracy against confidence, before and after calibration; on the diagonal, probabilities are calibrated."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    for column, (title, found) in enumerate((("the head's own scale", before), ("calibrated", after)), 1):
        axes = figure.add_subplot(1, 2, column)
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle="--")
        sizes = np.array(found.texts, dtype=float)
        axes.bar(found.confidence, found.accuracy, width=0.05, color=ACCENT, alpha=0.35)
        axes.scatter(found.confidence, found.accuracy, s=10 + 150 * sizes / max(1.0, sizes.sum()), color=ACCENT)
        axes.set_title(f"{title}: expected calibration error {100 * found.error:.1f} %", fontsize=9)
        axes.set_xlabel("probability of the answer")
        axes.set_ylabel("part of the answers that are right")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.grid(alpha=0.25)
    return figure


def refusal_figure(known: Any, unknown: Any, threshold: float | None) -> Figure:
    """Histograms of the highest cosines of known and of out-of-scope texts, with the threshold."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    low = float(min(np.min(known), np.min(unknown)))
    bins = np.linspace(low, 1.0, 50).tolist()
    axes.hist(known, bins, density=True, alpha=0.6, color=ACCENT, label=f"of the classes ({len(known)} texts)")
    axes.hist(unknown, bins, density=True, alpha=0.6, color=PALE, label=f"out of scope ({len(unknown)} texts)")
    if threshold is not None:
        axes.axvline(threshold, color=INK, linestyle="--", linewidth=1, label=f"refused below {threshold:.2f}")
    axes.set_xlabel("highest cosine to a class")
    axes.set_yticks([])
    axes.legend(fontsize=8)
    return figure


def precision_figure(curve: PrecisionCurve, target: PrecisionPoint | None) -> Figure:
    """The part of the answers that are right, by the part of the texts that are answered; with the chosen threshold."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(100 * curve.coverage, 100 * curve.precision, color=ACCENT, marker=".", markersize=3)
    if target is not None:
        axes.plot(
            100 * target.coverage, 100 * target.precision, "o", color=PALE, label=f"refused below {target.threshold:g}"
        )
        axes.legend(fontsize=8, loc="lower left")
    axes.set_xlabel("texts answered, %")
    axes.set_ylabel("answers that are right, %")
    axes.set_xlim(0, 101)
    axes.set_ylim(min(50.0, 100 * float(curve.precision.min())), 101)
    axes.grid(alpha=0.25)
    return figure

"""Pictures for the documentation, from what `reproduce.kinds board` and `base_novel.py` wrote.

    python -m reproduce.pictures [names | base | explanation ...]

`base` reads runs/base-novel/table.md. Without a name, all of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

from dmin import FewShotClassifier
from dmin.data.labelled import read_corpus
from dmin.evaluation.figures import ACCENT, INK, PALE, save_png
from reproduce.kinds_lines import lines_of
from reproduce.leaderboard import value

SETS, SHOTS = ("banking77", "clinc150", "hwu64"), (1, 5, 10)
TEXT = "could I get the bill for the two chairs?"


def names_figure() -> Figure:
    """Accuracy of the default head against examples, with and without names."""
    lines = lines_of("board")
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    for column, name in enumerate(SETS, 1):
        axes = figure.add_subplot(1, 3, column)
        for named, label, colour in ((True, "with names", ACCENT), (False, "without", PALE)):
            accuracy = [value(lines, name, shot, named, "default") for shot in SHOTS]
            axes.plot(SHOTS, accuracy, "o-", color=colour, label=label)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("examples per class")
        axes.set_xticks(SHOTS)
        axes.set_ylim(45, 95)
        axes.grid(alpha=0.25)
    figure.axes[0].set_ylabel("accuracy, %")
    figure.axes[0].legend(fontsize=8, loc="lower right")
    return figure


def base_figure(table: Path) -> Figure:
    """Base and novel accuracy of each method, with their harmonic mean."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.read_text().splitlines()[2:] if line]
    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.add_subplot()
    for place, (label, colour) in enumerate((("base", INK), ("novel", PALE), ("harmonic mean", ACCENT))):
        values = [float(row[place + 1]) for row in rows]
        bars = axes.bar([x + 0.27 * (place - 1) for x in range(len(rows))], values, 0.25, label=label, color=colour)
        axes.bar_label(bars, fmt="%.0f", fontsize=8)
    axes.set_xticks(range(len(rows)), [row[0] for row in rows])
    axes.set_ylim(50, 100)
    axes.set_ylabel("accuracy, %")
    axes.legend(fontsize=8, ncols=3)
    return figure


def explanation_figure() -> Figure:
    """The shares of one decision, as bars."""
    corpus = read_corpus(Path(__file__).parent.parent / "examples" / "inbox" / "intents.yaml")
    found = FewShotClassifier(device="cpu").fit(corpus.examples).explain(TEXT)
    rows = list(reversed(found.examples))
    figure = Figure(figsize=(8, 2.4), layout="constrained")
    axes = figure.add_subplot()
    bars = axes.barh([row.text for row in rows], [row.share for row in rows], color=ACCENT)
    axes.bar_label(bars, fmt="%+.3f", fontsize=8, padding=3)
    axes.set_xlim(0, 1.2 * max(row.share for row in rows))
    axes.set_xlabel(f"share of the score {found.score:.3f} of {found.nearest}")
    axes.set_title(f"“{TEXT}”", fontsize=10)
    return figure


def main() -> None:
    out, chosen = Path("docs/images"), sys.argv[1:] or ["names", "base", "explanation"]
    if "names" in chosen:
        save_png(names_figure(), out / "names.png")
    if "base" in chosen:
        save_png(base_figure(Path("runs/base-novel/table.md")), out / "base-novel.png")
    if "explanation" in chosen:
        save_png(explanation_figure(), out / "explanation.png")


if __name__ == "__main__":
    main()

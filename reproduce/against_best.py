"""DMIN-plus against the best baseline of each cell of the four `*-splits` tables: against-best.md.

    python -m reproduce.against_best

The tables hold the p-values of plain paired t-tests over the five published class splits of each set. Those splits share
classes, so each t is corrected after Nadeau and Bengio (2003): t * sqrt((1/J) / (1/J + n_test/n_train)), J = 5. Holm's
correction runs over all sixteen cells. The best baseline is the best on the test classes themselves, a harder opponent
than one chosen beforehand. DMIN-plus reads two layers of the encoder in these tables, the baselines one.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

from scipy import stats

from dmin.evaluation.statistics import holm
from dmin.files import write_atomic

FOLDER = Path(__file__).parent
SPLITS = 5
# (training, test) classes of the five published splits
CLASSES = {
    "banking77": ((25, 27),) * 5,
    "hwu64": ((16, 25), (30, 19), (24, 22), (20, 29), (25, 28)),
    "liu54": ((18, 18),) * 5,
    "clinc150": ((50, 50),) * 5,
}
OURS = "dmin-plus"


def corrected(p_value: float, ratio: float, splits: int = SPLITS) -> float:
    """The p-value of a one-tailed paired t-test over splits, with the corrected variance."""
    t = float(stats.t.isf(p_value, splits - 1))
    return float(stats.t.sf(t * math.sqrt((1 / splits) / (1 / splits + ratio)), splits - 1))


def cells(data: str) -> list[tuple[str, str, float, float, float]]:
    """(cell, best baseline, ours, its accuracy, corrected p) of each column of a set's table."""
    with (FOLDER / f"{data}-splits.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ratio = sum(test / train for train, test in CLASSES[data]) / SPLITS
    found = []
    for way, shot in dict.fromkeys((row["way"], row["shot"]) for row in rows):
        column = [row for row in rows if (row["way"], row["shot"]) == (way, shot)]
        ours = next(float(row["accuracy"]) for row in column if row["row"] == OURS)
        best = max((row for row in column if row["row"] != OURS), key=lambda row: float(row["accuracy"]))
        p_value = corrected(float(best["p_t"]), ratio)
        found.append((f"{data}, {way}-way {shot}-shot", best["row"], ours, float(best["accuracy"]), p_value))
    return found


def page() -> str:
    """The table as Markdown."""
    found = [cell for data in CLASSES for cell in cells(data)]
    family = holm({name: p_value for name, *_, p_value in found})
    lines = ["# DMIN-plus against the best baseline of each cell", "", "Made by `python -m reproduce.against_best`. "]
    lines[-1] += " ".join((__doc__ or "").split("\n\n")[2].split())
    lines += ["", "| | DMIN-plus | best baseline | difference | p | p, Holm |", "|---|---:|---:|---:|---:|---:|"]
    for name, best, ours, theirs, p_value in found:
        shown = f"{100 * ours:.1f} | {100 * theirs:.1f} ({best}) | {100 * (ours - theirs):+.1f} | {p_value:.4f}"
        lines.append(f"| {name} | {shown} | {family[name]:.4f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_atomic(FOLDER / "against-best.md", page())

"""DMIN-plus against the best baseline of each cell, over the split means: against-best.md from the four `*-splits` runs.

    python reproduce/against_best.py [runs/reproduce] [reproduce]

The best baseline is the best on the test classes themselves, a harder opponent than one chosen beforehand. One-tailed
paired t-test over the five split means; Holm within the eight cells of one shot. The splits share classes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dmin.evaluation.comparison import Comparison
from dmin.evaluation.comparison_plan import ComparisonPlan, standard_rows
from dmin.evaluation.statistics import holm, split_test
from dmin.files import write_atomic
from dmin.training import load_config

SETS = ("banking77", "hwu64", "liu54", "clinc150")
SPLITS = tuple(f"protaugment-0{number}" for number in range(1, 6))
OURS, BASELINES = "dmin-plus", ("dmin", "prototypical", "matching", "lwof", "nearest", "logistic")
Means = dict[tuple[str, int, int], list[float]]  # (row, way, shot) -> one mean a split


def read(folder: Path, data: str) -> Means:
    """The mean accuracies of one set's run."""
    rows = standard_rows((OURS, *BASELINES))
    plan = ComparisonPlan(load_config(overrides={"data": data}), (data,), SPLITS, rows)
    results = Comparison(plan, folder / f"{data}-splits", warn=print).results()
    found: Means = {}
    for split in SPLITS:
        for result in results:
            if result.job.split == split:
                found.setdefault((result.job.row.name, result.job.way, result.job.shot), []).append(result.mean)
    return found


def main() -> None:
    folder, target = (Path(given) for given in (*sys.argv[1:], "runs/reproduce", "reproduce")[:2])
    lines = []
    tables = {data: read(folder, data) for data in SETS}
    for shot in (1, 5):
        cells = []
        for data, means in tables.items():
            for way in (5, 10):
                best = max(BASELINES, key=lambda row: sum(means[row, way, shot]))
                ours, theirs = means[OURS, way, shot], means[best, way, shot]
                cells.append((data, way, best, ours, theirs, split_test(ours, theirs)))
        lines += [f"## {shot}-shot", "", "| | DMIN-plus | best baseline | difference | p | p, Holm |"]
        lines += ["|---|---:|---:|---:|---:|---:|"]
        corrected = holm({f"{data} {way}": p for data, way, *_, p in cells})
        for data, way, best, ours, theirs, p in cells:
            own, other = (100 * sum(values) / len(values) for values in (ours, theirs))
            shown = f"{own:.1f} | {other:.1f} ({best}) | {own - other:+.1f} | {p:.4f}"
            lines.append(f"| {data}, {way}-way | {shown} | {corrected[f'{data} {way}']:.4f} |")
        lines.append("")
    head = "# DMIN-plus against the best baseline of each cell\n\nMade by `python reproduce/against_best.py`. " + (
        " ".join((__doc__ or "").split("\n\n")[2].split())
    )
    write_atomic(target / "against-best.md", head + "\n\n" + "\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()

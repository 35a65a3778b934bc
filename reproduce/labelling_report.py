"""Tables and the picture from what `labelling.py` measured: reproduce/LABELLING.md, docs/images/labelling-curves.png.

python reproduce/labelling_report.py runs/labelling [--encoder NAME]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from labelling import SEEDS, SETS, TUNING_SEEDS, choose_candidate, read_lines
from labelling_strategies import BASELINES, GRID
from matplotlib.figure import Figure

from dmin.evaluation.figures import ACCENT, save_png
from dmin.evaluation.statistics import holm, mean_interval, paired_test
from dmin.labelling.forecast import Constants, Outcome, estimate

HERE = Path(__file__).parent
OURS = "dmin.suggest"
POINTS = {"1": 1, "2": 3, "4": 7}  # labels per class -> place in the curve
Curves = dict[str, dict[str, list[dict[str, Any]]]]  # set -> strategy -> curves by seed


def gather(rows: list[dict[str, Any]]) -> Curves:
    """The reported curves; ours is, for each set, the candidate that was best on the others."""
    found: Curves = defaultdict(dict)
    for name in [name for name in SETS if any(row["set"] == name for row in rows)]:
        chosen = choose_candidate(rows, without=name)
        for title, key in [*((key, key) for key in BASELINES), (OURS, chosen)]:
            curves = {row["seed"]: row for row in rows if (row["set"], row["strategy"]) == (name, key)}
            if all(seed in curves for seed in SEEDS):
                found[name][title] = [curves[seed] for seed in SEEDS]
    return {name: strategies for name, strategies in found.items() if len(strategies) == len(BASELINES) + 1}


def values(curves: list[dict[str, Any]], place: int | None, what: str = "accuracy") -> list[float]:
    """One number for each seed: a point of the curve, or its mean (the area under it)."""
    return [float(np.mean(curve[what])) if place is None else curve[what][place] for curve in curves]


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def accuracy_table(found: Curves, place: int | None, what: str = "accuracy") -> str:
    """Sets down, strategies across; the best in bold, with 95 % intervals over seeds."""
    titles = [*BASELINES, OURS]
    rows = []
    for name, strategies in found.items():
        intervals = {title: mean_interval(values(strategies[title], place, what)) for title in titles}
        best = max(interval.mean for interval in intervals.values())
        cells = [f"**{i.percent()}**" if i.mean == best else i.percent() for i in intervals.values()]
        rows.append([name, *cells])
    return table(["", *titles], rows)


def goal_table(found: Curves) -> tuple[str, int, int]:
    """For each set and number of labels: is ours first, or is its distance to the first within the interval?"""
    rows, met, total = [], 0, 0
    for name, strategies in found.items():
        cells = [name]
        for place in [*POINTS.values(), None]:
            scores = {title: values(curves, place) for title, curves in strategies.items()}
            first = max(scores, key=lambda title: float(np.mean(scores[title])))
            if first == OURS:
                cells.append("first")
                good = True
            else:
                gap = mean_interval([a - b for a, b in zip(scores[first], scores[OURS], strict=True)])
                good = gap.mean <= gap.half_width
                cells.append(f"{'within' if good else '**behind**'}: {first} {gap.percent()}")
            if place is not None:
                met, total = met + good, total + 1
        rows.append(cells)
    return table(["", *(f"{point} x classes" for point in POINTS), "area"], rows), met, total


def test_table(found: Curves) -> str:
    """Paired one-tailed t-tests over seeds of the area: ours against each, corrected by Holm within a set."""
    rows = []
    for name, strategies in found.items():
        tests = {
            title: paired_test(values(strategies[OURS], None), values(strategies[title], None)) for title in BASELINES
        }
        corrected = holm({title: test.t_p for title, test in tests.items()})
        rows.append([name, *(f"{100 * tests[t].difference:+.1f} (p {corrected[t]:.3f})" for t in BASELINES)])
    return table(["area, ours minus", *BASELINES], rows)


def savings(found: Curves) -> tuple[str, float]:
    """Labels that ours needs for the accuracy that random reaches with 1, 2, 3 and 4 labels per class."""
    rows, all_saved = [], []
    for name, strategies in found.items():
        mine, other = (np.mean([c["accuracy"] for c in strategies[key]], axis=0) for key in (OURS, "random"))
        bought = np.array(strategies[OURS][0]["labels"], float)
        # Accuracy grows from chance at no labels; before the first point the curve is taken as a straight line.
        path = np.maximum.accumulate(np.concatenate([[0], mine]))
        saved = [
            1 - np.interp(other[place], path, np.concatenate([[0], bought])) / bought[place] for place in (1, 3, 5, 7)
        ]
        all_saved.append(np.mean(saved))
        rows.append([name, *(f"{100 * part:.0f} %" for part in saved), f"{100 * np.mean(saved):.0f} %"])
    rows.append(["mean", "", "", "", "", f"**{100 * np.mean(all_saved):.0f} %**"])
    return table(["labels saved against random at", "1 x", "2 x", "3 x", "4 x", "mean"], rows), float(
        np.mean(all_saved)
    )


def discovery_table(rows: list[dict[str, Any]]) -> str:
    """ARI / NMI of each method on each set, with the number of clusters found."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines = []
    for name in [name for name in SETS if any(row["set"] == name for row in rows)]:
        cells = [f"{name} ({next(row['classes'] for row in rows if row['set'] == name)})"]
        for method in methods:
            part = [row for row in rows if (row["set"], row["method"]) == (name, method)]
            ari, nmi, count = (np.mean([row[key] for row in part]) for key in ("ari", "nmi", "clusters"))
            cells.append(f"{ari:.2f} / {nmi:.2f} ({count:.0f})")
        lines.append(cells)
    return table(["ARI / NMI (clusters)", *methods], lines)


def forecast_errors(records: list[dict[str, Any]], constants: Constants) -> dict[str, list[tuple[float, bool]]]:
    """(error, is the truth within the interval) now and with twice the labels, at every tenth answer from the 20th on."""
    found: dict[str, list[tuple[float, bool]]] = {"now": [], "double": []}
    for record in records:
        truth = {labels: accuracy for labels, accuracy, _ in record["truth"]}
        for labels, _, pile in record["truth"]:
            outcomes = [Outcome(known, right, sure) for known, right, _, sure in record["outcomes"] if known < labels]
            made = estimate(outcomes, pile, labels, [2 * labels], constants) if len(outcomes) >= 20 else None
            if made is None:
                continue
            for key, at in (("now", made.now), ("double", made.later[0])):
                real = truth.get(at.labels)
                if real is not None:
                    found[key].append((at.accuracy - real, at.low <= real <= at.high))
    return found


def forecast_table(records: list[dict[str, Any]]) -> tuple[str, Constants]:
    """Each set with the constants that were best on the others; then the constants that are best on all."""
    grid = [Constants(*chosen) for chosen in product((0.2, 0.4, 0.6, 0.8), (1.0, 1.5, 2.0), (0.0, 0.5, 1.0))]
    names = [name for name in SETS if any(record["set"] == name for record in records)]
    measured = {
        (name, constants): forecast_errors([r for r in records if r["set"] == name], constants)
        for name in names
        for constants in grid
    }

    def loss(constants: Constants, without: str | None = None) -> float:
        return float(np.mean([
            np.mean([abs(error) for key in ("now", "double") for error, _ in measured[name, constants][key]])
            for name in names if name != without
        ]))  # fmt: skip

    rows = []
    for name in names:
        best = min(grid, key=lambda constants: loss(constants, name))
        row = [name]
        for key in ("now", "double"):
            part = measured[name, best][key]
            errors = np.array([error for error, _ in part])
            inside = np.mean([within for _, within in part])
            row += [f"{100 * np.abs(errors).mean():.1f}", f"{100 * errors.mean():+.1f}", f"{100 * inside:.0f} %"]
        rows.append(row)
    header = ["", "now: mean error", "bias", "in interval", "twice the labels: mean error", "bias", "in interval"]
    return table(header, rows), min(grid, key=loss)


def picture(found: Curves) -> Figure:
    """Accuracy against labels bought, one panel for each set."""
    figure = Figure(figsize=(10, 8), layout="constrained")
    for place, (name, strategies) in enumerate(found.items(), 1):
        axes = figure.add_subplot(3, 3, place)
        for title, curves in strategies.items():
            mean = 100 * np.mean([curve["accuracy"] for curve in curves], axis=0)
            style: dict[str, Any] = (
                {"color": ACCENT, "linewidth": 2.5, "zorder": 5} if title == OURS else {"linewidth": 1}
            )
            axes.plot(curves[0]["labels"], mean, label=title, **style)
        axes.set_title(f"{name}, {strategies[OURS][0]['classes']} classes", fontsize=10)
        axes.grid(alpha=0.25)
    figure.supxlabel("labels bought")
    figure.supylabel("accuracy on even test texts, %")
    figure.axes[0].legend(fontsize=7)
    return figure


def missing_line(found: Curves) -> str:
    """Says which sets are not measured yet, if any."""
    missing = [name for name in SETS if name not in found]
    if not missing:
        return ""
    return f" **Not measured yet: {', '.join(missing)}** (`labelling.py simulate --sets {','.join(missing)}`)."


def report(folder: Path, encoder: str) -> str:
    """The page as Markdown."""
    rows = read_lines(folder / "curves.jsonl")
    found = gather(rows)
    goals, met, total = goal_table(found)
    saved_table, saved = savings(found)
    chosen = {name: choose_candidate(rows, without=name) for name in found}
    forecasts, constants = forecast_table(read_lines(folder / "records.jsonl"))
    parts: dict[str, Callable[[], str]] = {
        "encoder": lambda: encoder,
        "seeds": lambda: str(len(SEEDS)),
        "sets": lambda: str(len(found)),
        "missing": lambda: missing_line(found),
        "tuning": lambda: str(len(TUNING_SEEDS)),
        "candidates": lambda: str(len(GRID)),
        "chosen": lambda: ", ".join(f"{name}: {key.removeprefix('ours ')}" for name, key in chosen.items()),
        "chosen_all": lambda: choose_candidate(rows).removeprefix("ours "),
        "goals": lambda: goals, "met": lambda: str(met), "total": lambda: str(total),
        "area": lambda: accuracy_table(found, None),
        "one": lambda: accuracy_table(found, 1), "two": lambda: accuracy_table(found, 3),
        "four": lambda: accuracy_table(found, 7), "classes": lambda: accuracy_table(found, 1, "found"),
        "tests": lambda: test_table(found), "saved_table": lambda: saved_table, "saved": lambda: f"{100 * saved:.0f}",
        "discovery": lambda: discovery_table(read_lines(folder / "discovery.jsonl")),
        "forecasts": lambda: forecasts, "constants": lambda: str(constants),
    }  # fmt: skip
    return (HERE / "labelling_page.md").read_text().format(**{name: make() for name, make in parts.items()})


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--encoder", default="the default encoder")
    chosen = parser.parse_args()
    (HERE / "LABELLING.md").write_text(report(chosen.folder, chosen.encoder))
    found = gather(read_lines(chosen.folder / "curves.jsonl"))
    save_png(picture(found), HERE.parent / "docs" / "images" / "labelling-curves.png")


if __name__ == "__main__":
    main()

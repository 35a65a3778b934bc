"""Tables and the picture from what `labelling.py` measured: reproduce/LABELLING.md, docs/images/labelling-curves.png.

python reproduce/labelling_report.py runs/labelling [--encoder NAME]

A section whose results are not in the folder stays as it stands in the page.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
from labelling import SEEDS, SETS, TUNING_SEEDS, choose_candidate, read_lines
from labelling_discovery import discovery_summary, discovery_table, seeds_line
from labelling_forecast import errors, measured, points_of, session_points
from labelling_sessions import MOST_ANSWERS
from labelling_strategies import BASELINES, GRID
from labelling_worlds import EXTRA, table
from matplotlib.figure import Figure

from dmin.evaluation.figures import ACCENT, save_png
from dmin.evaluation.statistics import holm, mean_interval, paired_test
from dmin.labelling.forecast import MEASURED, Constants

HERE = Path(__file__).parent
OURS = "dmin.suggest"
POINTS = {"1": 1, "2": 3, "4": 7}  # labels per class -> place in the curve
FORECAST_HEADER = ["", "now: mean error", "bias", "in interval", "twice the labels: mean error", "bias", "in interval"]
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


def unlabelled_table(rows: list[dict[str, Any]]) -> str:
    """Sessions without and with learning from unlabelled texts: prequential and test accuracy, paired differences."""
    kinds = {
        kind: {(row["set"], row["seed"]): row for row in rows if row["unlabelled"] is kind} for kind in (False, True)
    }
    pairs = {key: (row, kinds[True][key]) for key, row in kinds[False].items() if key in kinds[True]}
    measures = (lambda row: float(np.mean(row["right"])), lambda row: float(row["accuracy"]))
    lines, gains = [], [[], []]  # type: ignore[var-annotated]
    for name in [name for name in (*SETS, EXTRA) if any(key[0] == name for key in pairs)]:
        part, line = [pair for key, pair in pairs.items() if key[0] == name], [name]
        for place, of in enumerate(measures):
            without, learned = ([of(pair[kind]) for pair in part] for kind in (0, 1))
            gains[place] += [b - a for a, b in zip(without, learned, strict=True)]
            shown = [float(np.mean(values)) for values in (without, learned)]
            line += [f"{100 * shown[0]:.1f}", f"{100 * shown[1]:.1f}", f"{100 * (shown[1] - shown[0]):+.1f}"]
        lines.append([*line, str(len(part))])
    both = [mean_interval(values) for values in gains]
    told = [f"**{100 * gain.mean:+.1f} ± {100 * gain.half_width:.1f}**" for gain in both]
    lines.append(["all pairs", "", "", told[0], "", "", told[1], str(len(pairs))])
    header = ["", "asked texts: examples alone", "and unlabelled", "difference", "test texts: examples alone"]
    return table([*header, "and unlabelled", "difference", "seeds"], lines)


def large_table(rows: list[dict[str, Any]]) -> str:
    """Time and memory of `dmin.suggest` on a large pile."""
    lines = [
        [f"{row['texts']:,}", str(row["labelled"]), str(row["suggested"]), f"{row['seconds']:.1f} s",
         f"{row['bytes'] / 1e9:.2f} GB", f"{row['bytes_before'] / 1e9:.2f} GB"]
        for row in rows
    ]  # fmt: skip
    return table(["texts", "labelled", "suggested", "time", "highest memory", "of it before the call"], lines)


def error_cells(part: list[tuple[float, bool]]) -> list[str]:
    """Mean absolute error, bias, and how often the interval holds the truth."""
    if not part:
        return ["", "", ""]
    missed = np.array([error for error, _ in part])
    inside = np.mean([within for _, within in part])
    return [f"{100 * np.abs(missed).mean():.1f}", f"{100 * missed.mean():+.1f}", f"{100 * inside:.0f} %"]


def forecast_table(records: list[dict[str, Any]]) -> tuple[str, Constants]:
    """Each set with the constants of the others; then the constants of all."""
    records = [record for record in records if record["set"] in SETS]
    each, every = measured(records)
    points = points_of(records)
    found = {name: errors([p for p in points if p.name == name], constants) for name, constants in each.items()}
    return error_table(found), every


def session_forecast_table(sessions: list[dict[str, Any]]) -> str:
    """What the product's sessions said with the default constants."""
    points = session_points(sessions)
    names = [name for name in (*SETS, EXTRA) if any(point.name == name for point in points)]
    return error_table({name: errors([p for p in points if p.name == name], MEASURED) for name in names})


def error_table(found: dict[str, dict[str, list[tuple[float, bool]]]]) -> str:
    """Errors of each set, and their means over sets."""
    rows = [[name, *error_cells(part["now"]), *error_cells(part["double"])] for name, part in found.items()]
    mean = ["mean"]
    for key in ("now", "double"):
        whole = [np.mean([abs(error) for error, _ in part[key]]) for part in found.values() if part[key]]
        inside = [np.mean([within for _, within in part[key]]) for part in found.values() if part[key]]
        mean += [f"**{100 * np.mean(whole):.1f}**", "", f"{100 * np.mean(inside):.0f} %"]
    return table(FORECAST_HEADER, [*rows, mean])


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


def tuning_line(rows: list[dict[str, Any]], names: list[str]) -> str:
    """How the constants were chosen."""
    default = choose_candidate([]).removeprefix("ours ")
    tuned = {row["set"] for row in rows if row["seed"] in TUNING_SEEDS}
    if not set(SETS) <= tuned:
        return (
            f"They are the defaults ({default}): the best of {len(GRID)} candidates over all nine sets on three seeds "
            "that are not among those reported, chosen in an earlier run with vectors of the same encoder."
        )
    best = choose_candidate(rows).removeprefix("ours ")
    chosen = ", ".join(f"{name}: {choose_candidate(rows, without=name).removeprefix('ours ')}" for name in names)
    return (
        f"For each set they are the best of {len(GRID)} candidates on the **eight other** sets, on {len(TUNING_SEEDS)} "
        f"seeds that are not among those reported: {chosen}. Best over all nine: {best}; "
        f"the default: {default}."
    )


def missing_line(found: Curves) -> str:
    """Says which sets are not measured yet, if any."""
    missing = [name for name in SETS if name not in found]
    if not missing:
        return ""
    return f" **Not measured yet: {', '.join(missing)}** (`labelling.py simulate --sets {','.join(missing)}`)."


def fields(folder: Path, encoder: str) -> dict[str, str]:
    """What the folder's results put into the page; fields of results that are not there are missing."""
    found: dict[str, str] = {"encoder": encoder, "seeds": str(len(SEEDS)), "answers": str(MOST_ANSWERS)}
    of_file: dict[str, Callable[[list[dict[str, Any]]], dict[str, str]]] = {
        "curves": curve_fields, "discovery": discovery_fields, "records": record_fields,
        "sessions": lambda rows: {
            "unlabelled": unlabelled_table(rows), "session_forecasts": session_forecast_table(rows)
        },
        "large": lambda rows: {"large": large_table(rows)},
    }  # fmt: skip
    for name, make in of_file.items():
        if rows := read_lines(folder / f"{name}.jsonl"):
            found |= make(rows)
    return found


def curve_fields(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Goals and accuracies against labels bought."""
    found = gather(rows)
    goals, met, total = goal_table(found)
    saved_table, saved = savings(found)
    return {
        "sets": str(len(found)), "missing": missing_line(found), "tuned": tuning_line(rows, list(found)),
        "goals": goals, "met": str(met), "total": str(total), "area": accuracy_table(found, None),
        "one": accuracy_table(found, 1), "two": accuracy_table(found, 3), "four": accuracy_table(found, 7),
        "classes": accuracy_table(found, 1, "found"), "tests": test_table(found), "saved_table": saved_table,
        "saved": f"{100 * saved:.0f}",
    }  # fmt: skip


def discovery_fields(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Clusters against classes."""
    return {
        "discovery": discovery_table(rows), "discovery_seeds": seeds_line(rows),
        "discovery_summary": discovery_summary(rows),
    }  # fmt: skip


def record_fields(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Errors of the forecast."""
    forecasts, constants = forecast_table(rows)
    return {"forecasts": forecasts, "constants": str(constants)}


def sections(text: str) -> dict[str, str]:
    """The parts of a page by their titles; what stands before the first has the title ""."""
    first, *others = text.split("\n## ")
    return {"": first, **{part.partition("\n")[0]: part for part in others}}


def report(folder: Path, encoder: str, before: str) -> str:
    """The page as Markdown; sections that lack a result are those of the page `before`."""
    known = fields(folder, encoder)
    kept = sections(before)
    parts = []
    for title, template in sections((HERE / "labelling_page.md").read_text()).items():
        needed = {name for _, name, _, _ in Formatter().parse(template) if name}
        parts.append(template.format(**known) if needed <= known.keys() else kept[title])
    return "\n## ".join(parts)


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--encoder", default="the default encoder")
    chosen = parser.parse_args()
    page = HERE / "LABELLING.md"
    page.write_text(report(chosen.folder, chosen.encoder, page.read_text()))
    if found := gather(read_lines(chosen.folder / "curves.jsonl")):
        save_png(picture(found), HERE.parent / "docs" / "images" / "labelling-curves.png")


if __name__ == "__main__":
    main()

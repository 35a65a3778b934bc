"""The tables of KINDS.md, from the lines in runs/kinds: `python -m reproduce.kinds table`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reproduce.kinds_data import SETS
from reproduce.kinds_lines import PAGE, grouped, lines_of, markdown, put_table, yes

ALLOWED = 0.3  # points below the better baseline that are tolerated
VECTORS = (
    "All vectors are the product's: one text at a time, long texts in windows. The constants that the package ships are\n"
    "those that `fit-constants` wrote in this run."
)
REQUIRED = 0.7  # mean difference over all cells


def ordered(groups: dict[tuple[Any, ...], Any]) -> list[tuple[tuple[Any, ...], Any]]:
    """Groups whose key begins with a set, in the order of the sets."""
    places = (*SETS, "starter")
    return sorted(
        groups.items(), key=lambda item: (places.index(item[0][0]), *(str(part).zfill(3) for part in item[0][1:]))
    )


def cells() -> str:
    """The 54 cells, with intervals over the draws and paired tests."""
    from scipy import stats

    rows, differences, failed = [], [], 0
    for (name, shot, named), group in ordered(grouped(lines_of("cells"), ("set", "shot", "names"))):
        values = {method: [line["accuracy"][method] for line in group] for method in group[0]["accuracy"]}
        means = {method: float(np.mean(found)) for method, found in values.items()}
        better = max(("nearest", "logistic"), key=lambda method: means[method])
        change = np.subtract(values["default"], values[better])
        p = float(stats.ttest_1samp(change, 0).pvalue) if change.std() else 1.0
        half = interval(values["default"])
        mark = "" if change.mean() >= -ALLOWED else "n.s." if p >= 0.05 else "fails"
        differences.append(float(change.mean()))
        failed += mark == "fails"
        rows.append([name, str(shot), yes(named), f"{means['nearest']:.2f}", f"{means['logistic']:.2f}",
                     f"{means['default']:.2f} ± {half:.2f}", f"{change.mean():+.2f}", f"{p:.3f}", mark])  # fmt: skip
    header = ["set", "per class", "names", "nearest prototype", "logistic regression", "default",
              "difference to the better", "p", ""]  # fmt: skip
    below = sum(value < -ALLOWED for value in differences)
    return markdown(header, rows) + (
        f"\n\n{len(rows)} cells, mean difference {np.mean(differences):+.2f} (goal {REQUIRED:+.1f}), smallest "
        f"{min(differences):+.2f}, below -{ALLOWED}: {below}, of these significantly (failing): {failed}"
    )


def short_cells() -> str:
    """Of the cells, five examples with names: the table of the README."""
    rows = []
    for (name, shot, named), group in ordered(grouped(lines_of("cells"), ("set", "shot", "names"))):
        if shot == 5 and named:
            default, logistic, nearest = (
                [line["accuracy"][method] for line in group] for method in ("default", "logistic", "nearest")
            )
            mean = f"{np.mean(default):.1f} ± {interval(default):.1f}"
            rows.append([name, mean, f"{np.mean(logistic):.1f}", f"{np.mean(nearest):.1f}"])
    return markdown(["", "default", "logistic regression", "nearest prototype"], rows)


def interval(values: list[float]) -> float:
    """Half of the 95 % confidence interval of a mean over draws."""
    from scipy import stats

    return float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)


def uneven() -> str:
    """Change of accuracy where some classes have more examples."""
    rows = []
    for (name, part, few, named, many), group in ordered(
        grouped(lines_of("uneven"), ("set", "part", "few", "names", "many"))
    ):
        change = np.mean([line["change"] for line in group], axis=0)
        rows.append([name, f"{part:.0%}", str(few), yes(named), str(many), f"{change[0]:+.2f}", f"{change[1]:+.1f}"])
    header = ["set", "raised", "others have", "names", "raised to", "the others", "the raised"]
    worst = min(float(row[5]) for row in rows)
    return (
        markdown(header, rows)
        + f"\n\n{len(rows)} rows; the worst change of the others is {worst:+.2f} (goal: at least -1)"
    )


def unlabelled() -> str:
    """Accuracy of default and logistic regression, and what unlabelled texts change."""
    rows, lowest = [], 0.0
    for (name, pile, per), group in ordered(grouped(lines_of("unlabelled"), ("set", "pile", "per"))):
        mean = {key: np.mean([line[key] for line in group], axis=0) for key in ("before", "after", "logistic", "graph")}
        change, beside = mean["after"] - mean["before"], mean["graph"] - mean["logistic"]
        worst = float(np.min([np.subtract(line["after"], line["before"]) for line in group]))
        lowest = min(lowest, float(change.min()))
        cells = [*(f"{value:+.2f}" for value in change), f"{worst:+.1f}"]
        cells += [f"{mean['after'][1]:.1f}", f"{mean['graph'][1]:.1f}", *(f"{value:+.2f}" for value in beside)]
        rows.append([name, pile, str(per), *cells, "" if change.min() >= -ALLOWED else "below"])
    header = ["set", "pile", "per class", "default: texts of the pile", "new texts", "worst task",
              "default, new texts, %", "logistic regression + graph, new texts, %",
              "logistic regression + graph: texts of the pile", "new texts", ""]  # fmt: skip
    below = sum(row[-1] == "below" for row in rows)
    return markdown(header, rows) + (
        f"\n\n{len(rows)} rows; below -{ALLOWED} for the pile or for new texts: {below}; the lowest is {lowest:+.2f}"
    )


def refusal() -> str:
    """Refusal and probabilities."""
    rows = []
    for (name, unknown, shot, named), group in ordered(
        grouped(lines_of("refusal"), ("set", "unknown", "shot", "names"))
    ):
        mean = np.mean([line["values"] for line in group], axis=0)
        rows.append([name, unknown, str(shot), yes(named), *(f"{100 * value:.1f}" for value in mean)])
    header = ["set", "unknown", "per class", "names", "AUROC", "FPR at 95 % TPR", "false rejections", "refused",
              "calibration error"]  # fmt: skip
    return markdown(header, rows)


def board() -> str:
    """The public leaderboards."""
    keys = ("nearest", "logistic", "default", "logistic_graph", "adapted")
    rows = [
        [line["set"], str(line["shot"]), yes(line["names"]), *(f"{line[key]:.1f}" for key in keys)]
        for line in lines_of("board")
    ]
    header = ["set", "examples", "names", "nearest prototype", "logistic regression", "default",
              "logistic regression + graph", "default + unlabelled test texts"]  # fmt: skip
    return markdown(header, rows)


def unlabelled_board() -> str:
    """The leaderboards with names, with and without unlabelled texts: the table of docs/how-to/unlabelled.md."""
    keys = ("default", "adapted", "logistic_graph")
    lines = [line for line in lines_of("board") if line["names"]]
    rows = [[line["set"], str(line["shot"]), *(f"{line[key]:.1f}" for key in keys)] for line in lines]
    return markdown(
        ["set", "examples per class", "default", "with unlabelled texts", "logistic regression + graph"], rows
    )


def pile() -> str:
    """Time and memory of large piles."""
    rows = [
        [f"{line['texts']:,}", f"{line['learned_from']:,}", f"{line['seconds']:.0f} s", f"{line['megabytes']:.0f} MB"]
        for line in lines_of("pile")
    ]  # fmt: skip
    return markdown(["texts", "learned from", "`adapt`", "peak of what it allocates"], rows)


def samples() -> str:
    """What a sample of a pile costs."""
    rows = [[f"{line['texts']:,}", f"{line['accuracy']:.2f}"] for line in lines_of("samples")]
    return markdown(["unlabelled texts", "accuracy on new texts, %"], rows)


def names() -> str:
    """What names give, on three sets of the cells: the table of docs/how-to/names.md."""
    groups = grouped(lines_of("cells"), ("set", "shot", "names"))
    sets = ("banking77", "clinc150", "hwu64")
    rows = [
        [str(shot), *(f"{np.mean([line['accuracy']['default'] for line in groups[name, shot, named]]):.1f}"
                      for name in sets for named in (False, True))]
        for shot in (1, 5, 10)
    ]  # fmt: skip
    return markdown(["examples per class", *(title for name in sets for title in (name, "+ names"))], rows)


def calibration() -> str:
    """Expected calibration error where half of the classes are known: the table of docs/explanation/probabilities.md."""
    groups = grouped(lines_of("refusal"), ("set", "unknown", "shot", "names"))
    known = [name for name in SETS if (name, "half of the classes", 1, True) in groups]
    rows = [
        [name, *(f"{100 * np.mean([line['values'][4] for line in groups[name, 'half of the classes', shot, named]]):.1f}"
                 for named in (False, True) for shot in (1, 5, 10))]
        for name in known
    ]  # fmt: skip
    return markdown(["set", "1", "5", "10", "1 + names", "5 + names", "10 + names"], rows)


def out_of_scope() -> str:
    """Refusal on clinc150's out-of-scope texts: the table of docs/how-to/refusal.md."""
    groups = grouped(lines_of("refusal"), ("set", "unknown", "shot", "names"))
    rows = []
    for (name, unknown, shot, named), group in groups.items():
        if (name, unknown) == ("clinc150", "out-of-scope texts"):
            mean = 100 * np.mean([line["values"] for line in group], axis=0)
            rows.append([str(shot), yes(named), *(f"{value:.1f}" for value in mean[:4])])
    return markdown(
        ["per class", "names", "AUROC", "FPR at 95 % TPR", "false rejections", "refused out-of-scope texts"], rows
    )


TABLES: dict[str, Callable[[], str]] = {
    "cells": cells, "uneven": uneven, "unlabelled": unlabelled, "refusal": refusal, "board": board, "pile": pile,
    "samples": samples,
}  # fmt: skip


def write_tables() -> None:
    """Put each table that was measured into KINDS.md."""
    for kind, made in TABLES.items():
        if lines_of(kind):
            put_table(PAGE, kind, made())
            print(kind, flush=True)
    root = PAGE.parents[1]
    if lines_of("board"):
        put_table(root / "docs" / "how-to" / "unlabelled.md", "unlabelled", unlabelled_board())
    if lines_of("cells"):
        put_table(root / "README.md", "kinds", short_cells())
        put_table(root / "docs" / "how-to" / "names.md", "names", names())
    if all(lines_of(kind) for kind in TABLES):
        put_table(PAGE, "vectors", VECTORS)
    if lines_of("refusal"):
        put_table(root / "docs" / "explanation" / "probabilities.md", "calibration", calibration())
        put_table(root / "docs" / "how-to" / "refusal.md", "refusal", out_of_scope())

"""The picture of the paper's table: what every row gains over DMIN on each set, with the interval of the difference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dmin.evaluation.figures import save_png
from dmin.evaluation.raw import RawCell
from dmin.evaluation.statistics import Interval, mean_interval
from reproduce.paper_page import title_of
from reproduce.paper_plan import SETS, splits_of
from reproduce.paper_rows import ROWS

WAY, SHOTS = 5, (1, 5)
COLOURS = ("#0f6fb8", "#b3541e")
METHODS = [name for name, row in ROWS.items() if row.part == "main" and not row.published_only and name != "dmin"]
PARTS = [name for name, row in ROWS.items() if row.part == "ablation"]
DRAWN = [*METHODS, *PARTS]

Accuracies = dict[tuple[str, int], list[float]]  # row and shot -> accuracy of each episode


def drawn_cells(cells: Sequence[RawCell], data: str) -> Accuracies:
    """The cells of one panel: a set's first fair split, 5-way, the first training seed."""
    place = (data, next(iter(splits_of(data))), WAY, 0)
    return {
        (cell.row.name, cell.shot): cell.result().accuracies
        for cell in cells
        if (cell.data, cell.split, cell.way, cell.seed) == place
    }


def gains(found: Accuracies) -> dict[tuple[str, int], Interval]:
    """Row - DMIN in points, episode by episode, with the 95 % confidence interval over the shared episodes."""
    return {
        (row, shot): mean_interval([100 * (a - b) for a, b in zip(right, found["dmin", shot], strict=True)])
        for (row, shot), right in found.items()
        if row in DRAWN and ("dmin", shot) in found
    }


def picture(cells: Sequence[RawCell], path: Path) -> None:
    """Small multiples: one panel per set, one line per row, 1-shot above 5-shot, all on one split of the set."""
    figure = Figure(figsize=(9, 9.5), layout="constrained")
    axes = figure.subplots(3, 3, sharex=True, sharey=True)  # one scale: a point is as wide in every panel
    for axis, data in zip(axes.flat, SETS, strict=True):
        _panel(axis, drawn_cells(cells, data), data)
    axes.flat[0].set_yticks(range(len(DRAWN)), [title_of(name).split(" (")[0] for name in DRAWN])
    axes.flat[0].set_ylim(len(DRAWN) - 0.4, -0.6)
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    figure.suptitle(
        "Points above (right of the line) or below DMIN, whose accuracy in % stands over each panel (1-shot / 5-shot).\n"
        "5-way, encoder frozen; bars: 95 % confidence interval of the difference over 300 shared episodes, split fair-01",
        fontsize=9,
    )
    save_png(figure, path)


def _panel(axis: Axes, found: Accuracies, data: str) -> None:
    means = [f"{100 * mean_interval(found['dmin', s]).mean:.1f}" if ("dmin", s) in found else "–" for s in SHOTS]
    axis.set_title(f"{data}: {' / '.join(means)}" if found else f"{data}: not computed yet", fontsize=8)
    differences = gains(found)
    for shot, colour, offset in zip(SHOTS, COLOURS, (-0.16, 0.16), strict=True):
        rows = [(place, differences[name, shot]) for place, name in enumerate(DRAWN) if (name, shot) in differences]
        axis.errorbar(
            [gain.mean for _, gain in rows], [place + offset for place, _ in rows],
            xerr=[gain.half_width for _, gain in rows], fmt="o", markersize=3, linewidth=1, color=colour,
            label=f"{shot}-shot",
        )  # fmt: skip
    axis.axvline(0, color="#444444", linewidth=0.8, linestyle="--", zorder=0)
    axis.axhline(len(METHODS) - 0.5, color="#444444", linewidth=0.6)  # below: DMIN without its parts
    axis.tick_params(labelsize=7)
    axis.grid(linewidth=0.4)

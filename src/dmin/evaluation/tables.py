"""Comparison tables in the paper's layout: methods down, settings across; as text, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dmin.errors import printable
from dmin.evaluation.bench import JobResult
from dmin.evaluation.comparison_plan import ComparisonPlan
from dmin.evaluation.statistics import (
    ALPHA,
    Interval,
    PairedTest,
    holm,
    mean_interval,
    paired_test,
    split_test,
    spread,
)

Setting = tuple[int, int]  # way, shot


@dataclass(frozen=True)
class TableCell:
    """One number of a table, with its interval, cost and tests."""

    interval: Interval
    seed_spread: float  # standard deviation of the means over seeds
    seconds: float
    megabytes: float
    episodes: int
    best: bool = False
    p_value: float | None = None  # of "the reference is better than this row", as in the paper (t-test)
    p_corrected: float | None = None  # permutation test after Holm (one split), or split t-test after Holm
    p_reverse: float | None = None  # of "this row is better than the reference", after Holm

    @property
    def mark(self) -> str:
        """* the reference is better by t-test, ** also after correction; ° this row is better than the reference."""
        if self.p_corrected is not None and self.p_corrected < ALPHA:
            return "**"
        if self.p_value is not None and self.p_value < ALPHA:
            return "*"
        return "°" if self.p_reverse is not None and self.p_reverse < ALPHA else ""

    def text(self) -> str:
        """As "84.5 ± 0.9**"."""
        if math.isnan(self.interval.half_width):
            return f"{100 * self.interval.mean:.1f}{self.mark}"
        return self.interval.percent() + self.mark


@dataclass(frozen=True)
class ComparisonTable:
    """All rows of one data set."""

    data: str
    splits: tuple[str, ...]
    settings: tuple[Setting, ...]
    titles: dict[str, str]  # row name -> title
    cells: dict[tuple[str, Setting], TableCell]
    reference: str
    note: str

    @property
    def header(self) -> list[str]:
        """The column titles."""
        return ["method", *(f"{way}-way {shot}-shot" for way, shot in self.settings)]

    def rows(self) -> list[tuple[str, list[TableCell | None]]]:
        """Each row's title and cells; None where a cell is not made yet."""
        return [
            (title, [self.cells.get((name, setting)) for setting in self.settings])
            for name, title in self.titles.items()
        ]


def build_tables(plan: ComparisonPlan, results: Sequence[JobResult]) -> list[ComparisonTable]:
    """One table per data set."""
    return [_build(plan, data, [result for result in results if result.job.data == data]) for data in plan.data]


def _build(plan: ComparisonPlan, data: str, results: Sequence[JobResult]) -> ComparisonTable:
    settings = tuple((way, shot) for way in plan.ways for shot in plan.shots)
    splits = tuple(dict.fromkeys(result.split_name for result in results))
    titles = {row.name: row.title or row.name for row in plan.rows}
    titles |= {r.job.row.name: r.title for r in reversed(results)}
    by_cell: dict[tuple[str, Setting], list[JobResult]] = {}
    for result in results:
        by_cell.setdefault((result.job.row.name, (result.job.way, result.job.shot)), []).append(result)
    cells: dict[tuple[str, Setting], TableCell] = {}
    for setting in settings:
        column = {row.name: by_cell.get((row.name, setting), []) for row in plan.rows}
        full = {name: found for name, found in column.items() if len(found) == len(plan.splits) * plan.seeds}
        tests = _tests(plan.reference, full)
        best = max((_interval(found).mean for found in full.values()), default=None)
        for name, found in full.items():
            interval = _interval(found)
            cells[name, setting] = TableCell(
                interval, _seed_spread(found), sum(r.seconds for r in found), max(r.peak_megabytes for r in found),
                len(found[0].accuracies), interval.mean == best, *tests.get(name, (None, None, None)),
            )  # fmt: skip
    return ComparisonTable(data, splits, settings, titles, cells, plan.reference, _note(plan, splits))


def _interval(found: Sequence[JobResult]) -> Interval:
    """Over episodes (seeds averaged) with one split; over split means with several."""
    by_split = _by_split(found)
    if len(by_split) == 1:
        return mean_interval(next(iter(by_split.values())))
    return mean_interval([sum(values) / len(values) for values in by_split.values()])


def _by_split(found: Sequence[JobResult]) -> dict[str, list[float]]:
    """Each split's accuracies by episode, averaged over the seeds."""
    splits: dict[str, list[list[float]]] = {}
    for result in found:
        splits.setdefault(result.split_name, []).append(result.accuracies)
    return {name: [sum(column) / len(column) for column in zip(*seeds, strict=True)] for name, seeds in splits.items()}


def _seed_spread(found: Sequence[JobResult]) -> float:
    seeds: dict[int, list[float]] = {}
    for result in found:
        seeds.setdefault(result.job.seed, []).append(result.mean)
    return spread([sum(means) / len(means) for means in seeds.values()])


def _tests(
    reference: str, full: dict[str, list[JobResult]]
) -> dict[str, tuple[float | None, float | None, float | None]]:
    """(p, corrected p, corrected p of the reverse) of the reference against each other row."""
    if reference not in full or len(full) < 2:
        return {}
    ours = _by_split(full[reference])
    single, plain, reverse = len(ours) == 1, {}, {}
    corrected_input: dict[str, float] = {}
    for name, found in full.items():
        if name == reference:
            continue
        theirs = _by_split(found)
        if single:
            (a,), (b,) = ours.values(), theirs.values()
            count = min(len(a), len(b))  # full fine-tuning has the first of the shared episodes only
            first, second = tuple(a[:count]), tuple(b[:count])
            forward, backward = _paired_test(first, second), _paired_test(second, first)
            plain[name], corrected_input[name], reverse[name] = (
                forward.t_p,
                forward.permutation_p,
                backward.permutation_p,
            )
        else:
            means = [([sum(x[s]) / len(x[s]) for s in ours]) for x in (ours, theirs)]
            plain[name] = corrected_input[name] = split_test(means[0], means[1])
            reverse[name] = split_test(means[1], means[0])
    corrected, turned = holm(corrected_input), holm(reverse)
    return {name: (plain[name], corrected[name], turned[name]) for name in plain}


@lru_cache(maxsize=4096)  # tables are written again and again while a comparison grows
def _paired_test(first: tuple[float, ...], second: tuple[float, ...]) -> PairedTest:
    return paired_test(first, second)


def _note(plan: ComparisonPlan, splits: Sequence[str]) -> str:
    base = plan.base
    over = (
        f"{plan.episodes} episodes"
        if len(splits) <= 1
        else f"{len(splits)} class splits of {plan.episodes} episodes each"
    )
    test = (
        "* p < 0.05, one-tailed paired t-test over the episodes; ** also in a permutation test after Holm"
        if len(splits) <= 1
        else "* p < 0.05, one-tailed paired t-test over the split means (the splits share classes); ** also after Holm"
    )
    named = ", every class with its name as one more example" if plan.names else ""
    return (
        f"Accuracy in %, 95 % confidence interval over {over}; {plan.seeds} seed(s); tune {base.tune}, start {plan.start}, "
        f"encoder {base.encoder}, at most {base.stage2.episodes} training episodes, {base.stage2.batch} per update, "
        f"{base.queries} queries per class{named}. Beside a row, {plan.reference} is better: {test}; ° the row is better "
        f"than {plan.reference}, after Holm."
    )


def to_markdown(table: ComparisonTable) -> str:
    """As Markdown, best in bold."""
    lines = [
        "| " + " | ".join(table.header) + " |",
        "|---|" + "---:|" * len(table.settings),
    ]
    for title, cells in table.rows():
        texts = [
            "" if cell is None else f"**{cell.text()}**" if cell.best else cell.text().replace("*", "\\*")
            for cell in cells
        ]
        lines.append(f"| {_cell(title)} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + f"\n\n{table.note.replace('*', chr(92) + '*')}\n"


def to_latex(table: ComparisonTable) -> str:
    """As a LaTeX table with booktabs."""
    ways = list(dict.fromkeys(way for way, _ in table.settings))
    shots = list(dict.fromkeys(shot for _, shot in table.settings))
    groups = " & ".join(rf"\multicolumn{{{len(shots)}}}{{c}}{{{way}-way}}" for way in ways)
    names = " & ".join(f"{shot}-shot" for _ in ways for shot in shots)
    lines = [
        r"\begin{tabular}{l" + "r" * len(table.settings) + "}",
        r"\toprule",
        rf" & {groups} \\",
        rf"Model & {names} \\",
        r"\midrule",
    ]
    for title, cells in table.rows():
        texts = []
        for cell in cells:
            if cell is None:
                texts.append("--")
                continue
            text = cell.text().replace(" ± ", r"$\pm$").replace("**", r"$^{**}$").replace("°", r"$^{\circ}$")
            text = text if "^{**}" in text else text.replace("*", r"$^{*}$")
            texts.append(rf"\textbf{{{text}}}" if cell.best else text)
        lines.append(f"{_escape(title)} & " + " & ".join(texts) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", "% " + printable(table.note)]
    return "\n".join(lines) + "\n"


def to_csv(table: ComparisonTable) -> str:
    """All figures of all cells, one line per cell."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["data", "splits", "row", "title", "way", "shot", "accuracy", "ci95", "seed_std", "episodes", "p_t",
                     "p_corrected", "p_reverse", "seconds", "peak_megabytes"])  # fmt: skip
    for (name, (way, shot)), cell in table.cells.items():
        writer.writerow([
            table.data, " ".join(table.splits), name, table.titles[name], way, shot,
            *(f"{value:.6g}" if value is not None else "" for value in (
                cell.interval.mean, cell.interval.half_width, cell.seed_spread, cell.episodes, cell.p_value,
                cell.p_corrected, cell.p_reverse, cell.seconds, cell.megabytes,
            )),
        ])  # fmt: skip
    return buffer.getvalue()


def to_costs(table: ComparisonTable) -> str:
    """Seconds and peak megabytes of each cell, as Markdown."""
    lines = ["| " + " | ".join(table.header) + " |", "|---|" + "---:|" * len(table.settings)]
    for title, cells in table.rows():
        texts = ["" if cell is None else f"{cell.seconds:.0f} s, {cell.megabytes:.0f} MB" for cell in cells]
        lines.append(f"| {_cell(title)} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """A name in a Markdown table."""
    return printable(text).replace("|", "\\|")


def _escape(text: str) -> str:
    """A name in LaTeX."""
    signs = {sign: "\\" + sign for sign in "&%_#${}"}
    signs |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(signs.get(sign, sign) for sign in printable(text))

"""Comparison tables in the paper's layout: methods down, settings across; as text, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from dmin.errors import printable
from dmin.evaluation.bench import JobResult
from dmin.evaluation.chosen_settings import PLAIN
from dmin.evaluation.comparison_plan import ComparisonPlan
from dmin.evaluation.statistics import Interval, spread
from dmin.evaluation.table_tests import Place, RowTest, cell_interval, row_tests
from dmin.methods import method_class

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
    test: RowTest | None = None  # against the reference; None for the reference itself
    runs: tuple[float, ...] = ()  # the mean of each split and seed

    @property
    def mark(self) -> str:
        """See `RowTest.mark`; nothing for the reference itself."""
        return "" if self.test is None else self.test.mark

    def text(self) -> str:
        """As "84.5 ± 0.9↑"."""
        if math.isnan(self.interval.half_width):
            return f"{100 * self.interval.mean:.1f}{self.mark}"
        return self.interval.percent() + self.mark

    def as_the_paper(self) -> str:
        """Mean ± standard deviation over splits and seeds, as "84.50 ± 0.27"."""
        return Interval(self.interval.mean, spread(self.runs)).percent(2)


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
    row_settings: dict[str, dict[str, Any]]  # row name -> settings that only it has, by dotted names

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

    def settings_rows(self) -> list[tuple[str, str]]:
        """Each row with settings of its own, as ("DMIN", "memory_capsules 64, input_map on")."""
        return [
            (self.titles[name], ", ".join(f"{key.removeprefix('options.')} {_value(v)}" for key, v in own.items()))
            for name, own in self.row_settings.items()
            if own
        ]


def _value(value: Any) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else "none" if value is None else str(value)


def build_tables(plan: ComparisonPlan, results: Sequence[JobResult]) -> list[ComparisonTable]:
    """One table per data set; the tests are corrected over all of them together."""
    by_place: dict[Place, list[JobResult]] = {}
    for result in results:
        job = result.job
        by_place.setdefault((job.data, job.row.name, job.way, job.shot), []).append(result)
    full = {place: found for place, found in by_place.items() if len(found) == len(plan.splits) * plan.seeds}
    tests = row_tests(full, plan.reference)
    note = _note(plan, len(tests))
    return [_build(plan, data, results, full, tests, note) for data in plan.data]


def _build(
    plan: ComparisonPlan,
    data: str,
    results: Sequence[JobResult],
    full: dict[Place, list[JobResult]],
    tests: dict[Place, RowTest],
    note: str,
) -> ComparisonTable:
    own = [result for result in results if result.job.data == data]
    settings = tuple((way, shot) for way in plan.ways for shot in plan.shots)
    titles = {row.name: row.title or row.name for row in plan.rows}
    titles |= {result.job.row.name: _row_title(result) for result in reversed(own)}
    cells: dict[tuple[str, Setting], TableCell] = {}
    for way, shot in settings:
        column = {row.name: full[place] for row in plan.rows if (place := (data, row.name, way, shot)) in full}
        best = max((cell_interval(found).mean for found in column.values()), default=None)
        for name, found in column.items():
            interval = cell_interval(found)
            cells[name, (way, shot)] = TableCell(
                interval, _seed_spread(found), sum(r.seconds for r in found), max(r.peak_megabytes for r in found),
                len(found[0].accuracies), interval.mean == best, tests.get((data, name, way, shot)),
                tuple(result.mean for result in found),
            )  # fmt: skip
    splits = tuple(dict.fromkeys(result.split_name for result in own))
    searched = {row.name: plan.settings_of(row) for row in plan.rows}
    return ComparisonTable(data, splits, settings, titles, cells, plan.reference, note, searched)


def _row_title(result: JobResult) -> str:
    """A row's title, which says where it stands on the encoder as it came; the bench names a frozen head by itself."""
    raw = result.job.row.start == "raw" and "raw encoder" not in result.title
    return f"{result.title} (raw encoder)" if raw else result.title


def _seed_spread(found: Sequence[JobResult]) -> float:
    seeds: dict[int, list[float]] = {}
    for result in found:
        seeds.setdefault(result.job.seed, []).append(result.mean)
    return spread([sum(means) / len(means) for means in seeds.values()])


def _note(plan: ComparisonPlan, tests: int) -> str:
    """What the figures and the arrows of a table mean."""
    base, several = plan.base, len(plan.splits) > 1
    over = (
        f"{len(plan.splits)} class splits of {plan.episodes} episodes each" if several else f"{plan.episodes} episodes"
    )
    corrected = (
        ", with the variance corrected for classes that splits share (Nadeau and Bengio, 2003)" if several else ""
    )
    named = ", every class with its name as one more example" if plan.names else ""
    chosen = ""
    if plan.chosen is not None and plan.chosen.name != PLAIN:
        chosen = f", methods with the settings that {plan.chosen.name} chose on validation classes (listed in table.md)"
    elif plan.chosen is None and base.tune == "none":
        chosen = (
            ", trained methods with the settings that our search chose where it found better ones (listed in table.md)"
        )
    reference = method_title(plan)
    test = (
        "paired t-test over the split means with the corrected variance"
        if several
        else "paired permutation test over the episodes"
    )
    holm = f", after Holm's correction over the {tests} tests of all tables here" if tests > 1 else ""
    marks = (
        f" ↑ significantly better, ↓ significantly worse than the reference row, {reference} (p < 0.05, two-tailed "
        f"{test}{holm}); without an arrow no difference was shown. "
        "Bold: the highest mean of its column, which alone shows no difference."
        if tests
        else ""
    )
    return (
        f"Accuracy in % ± 95 % confidence interval over {over}{corrected}; seeds: {plan.seeds}; tune {base.tune}, start "
        f"{plan.start}, encoder {base.encoder}, at most {base.stage2.episodes} training episodes, {base.stage2.batch} per "
        f"update, {base.queries} queries per class{named}{chosen}.{marks}"
    )


def method_title(plan: ComparisonPlan) -> str:
    """The title of the reference row."""
    row = next((row for row in plan.rows if row.name == plan.reference), None)
    return plan.reference if row is None else row.title or method_class(row.method).title


def to_markdown(table: ComparisonTable) -> str:
    """As Markdown, best in bold."""
    lines = [
        "| " + " | ".join(table.header) + " |",
        "|---|" + "---:|" * len(table.settings),
    ]
    for title, cells in table.rows():
        texts = ["" if cell is None else f"**{cell.text()}**" if cell.best else cell.text() for cell in cells]
        lines.append(f"| {_cell(title)} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + f"\n\n{table.note}\n" + _settings(table) + _as_the_paper(table)


def _settings(table: ComparisonTable) -> str:
    """The rows' own settings as a list; nothing where all have their method's defaults."""
    lines = [f"- {printable(title)}: {printable(text)}" for title, text in table.settings_rows()]
    if not lines:
        return ""
    return "\n".join(["", "Settings; rows that are not here have their method's defaults:", "", *lines, ""])


def _as_the_paper(table: ComparisonTable) -> str:
    """Mean ± standard deviation over splits and seeds, as the paper prints it; nothing where a cell is one run."""
    if not any(len(cell.runs) > 1 for cell in table.cells.values()):
        return ""
    lines = ["", "Mean ± standard deviation over the class splits and seeds, as the paper prints its figures:", ""]
    lines += ["| " + " | ".join(table.header) + " |", "|---|" + "---:|" * len(table.settings)]
    for title, cells in table.rows():
        texts = ["" if cell is None else cell.as_the_paper() for cell in cells]
        lines.append(f"| {_cell(title)} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


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
            text = cell.text().replace(" ± ", r"$\pm$").replace("↑", r"$^{\uparrow}$").replace("↓", r"$^{\downarrow}$")
            texts.append(rf"\textbf{{{text}}}" if cell.best else text)
        lines.append(f"{_escape(title)} & " + " & ".join(texts) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", "% " + printable(table.note)]
    return "\n".join(lines) + "\n"


def to_csv(table: ComparisonTable) -> str:
    """All figures of all cells, one line per cell."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["data", "splits", "row", "title", "way", "shot", "accuracy", "ci95", "std", "seed_std", "episodes",
                     "p_t", "p_corrected", "p_reverse", "seconds", "peak_megabytes"])  # fmt: skip
    for (name, (way, shot)), cell in table.cells.items():
        writer.writerow([
            table.data, " ".join(table.splits), name, table.titles[name], way, shot,
            *(f"{value:.6g}" if value is not None else "" for value in (
                cell.interval.mean, cell.interval.half_width, spread(cell.runs), cell.seed_spread, cell.episodes,
                *(astuple(cell.test) if cell.test else (None, None, None)), cell.seconds, cell.megabytes,
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

"""The files that a comparison writes: its tables, and a page with the same figures as bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dmin.evaluation.bench import JobResult
from dmin.evaluation.comparison import Comparison
from dmin.evaluation.comparison_plan import ComparisonPlan
from dmin.evaluation.raw import write_raw
from dmin.evaluation.tables import ComparisonTable, TableCell, build_tables, to_costs, to_csv, to_latex, to_markdown
from dmin.files import write_atomic
from dmin.report import Bar, BarGroup, Cell, Report


def write_outputs(comparison: Comparison, out: Path, title: str, command: str) -> list[ComparisonTable]:
    """Write table.md, table.tex, table.csv, report.html and raw.jsonl; an unfinished table says which command fills it."""
    missing = len(comparison.missing())
    unfinished = f"{missing} cells are not made yet; this fills them: {command}" if missing else ""
    write_raw(out / "raw.jsonl", comparison.plan, comparison.raw(), title, command)
    return write_tables(comparison.plan, comparison.results(), out, title, command, unfinished)


def write_tables(
    plan: ComparisonPlan, results: Sequence[JobResult], out: Path, title: str, command: str, unfinished: str = ""
) -> list[ComparisonTable]:
    """Write the tables of some results in every form."""
    tables = build_tables(plan, results)
    parts = [f"# {title}", "", f"Made by `{command}`", ""]
    for table in tables:
        parts += [
            f"## {table.data}, {', '.join(table.splits)}",
            "",
            to_markdown(table),
            "Cost of each cell:",
            "",
            to_costs(table),
        ]
    write_atomic(out / "table.md", "\n".join([*parts, unfinished]).rstrip() + "\n")
    write_atomic(out / "table.tex", "\n".join(to_latex(table) for table in tables))
    first, *others = [to_csv(table) for table in tables]
    write_atomic(out / "table.csv", first + "".join(text.split("\n", 1)[1] for text in others))
    comparison_page(tables, title, command, unfinished).write(out / "report.html")
    return tables


def comparison_page(tables: Sequence[ComparisonTable], title: str, command: str, unfinished: str = "") -> Report:
    """A page with the tables of a comparison, its accuracies as bars, and what each cell cost."""
    summary = " ".join([*(_sentence(table) for table in tables), unfinished]).strip()
    report = Report(title, summary, made_by=command)
    for table in tables:
        about = f"{table.data}, {', '.join(table.splits)}"
        report.heading(about)
        report.table(
            table.header, [[name, *map(_cell, cells)] for name, cells in table.rows()], about=f"Accuracy, {about}"
        )
        report.paragraph(table.note, note=True)
        if settings := table.settings_rows():
            header = ["method", "settings; the others have their defaults"]
            report.table(header, settings, words=(0, 1), about=f"Settings, {about}")
        report.bars([_group(table, column) for column in range(len(table.settings))])
        report.heading(f"What it cost: {about}")
        costs = [[name, *map(_cost, cells)] for name, cells in table.rows()]
        report.table(table.header, costs, about=f"Cost, {about}")
        report.paragraph("Seconds of training and testing, and the highest memory in use.", note=True)
    return report


def _sentence(table: ComparisonTable) -> str:
    """The best row of a table in words; nothing where no cell is made yet."""
    wins: dict[str, int] = {}
    for name, cells in table.rows():
        wins[name] = sum(cell is not None and cell.best for cell in cells)
    made = sum(any(cells[column] is not None for _, cells in table.rows()) for column in range(len(table.settings)))
    if not made:
        return ""
    best = max(wins, key=lambda name: wins[name])
    others = [cell for _, cells in table.rows() for cell in cells if cell is not None]
    better, worse = (sum(cell.mark == mark for cell in others) for mark in "↓↑")
    said = f"On {table.data}, {best} has the highest mean accuracy in {wins[best]} of {made} settings."
    if better or worse:
        reference = table.titles.get(table.reference, table.reference)
        said += f" {reference} is significantly better than another row in {better} cells, and worse in {worse}."
    return said


def _cell(cell: TableCell | None) -> Cell:
    return Cell("") if cell is None else Cell(cell.text(), cell.best)


def _cost(cell: TableCell | None) -> str:
    return "" if cell is None else f"{cell.seconds:.0f} s, {cell.megabytes:.0f} MB"


def _group(table: ComparisonTable, column: int) -> BarGroup:
    """The bars of one setting, best first."""
    made = [(name, cells[column]) for name, cells in table.rows()]
    found = sorted(((n, c) for n, c in made if c is not None), key=lambda item: -item[1].interval.mean)
    return BarGroup(
        table.header[1 + column],
        [Bar(n, c.interval.mean, c.text(), c.interval.half_width, strong=c.best) for n, c in found],
    )

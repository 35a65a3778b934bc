"""What a comparison leaves behind: tables in four forms, the tests, and a page with charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dmin.evaluation.comparison import Comparison
from dmin.evaluation.figures import bars_figure
from dmin.evaluation.report import Report
from dmin.evaluation.tables import ComparisonTable, build_tables, to_costs, to_csv, to_latex, to_markdown
from dmin.files import write_atomic


def write_outputs(comparison: Comparison, out: Path, title: str, command: str) -> list[ComparisonTable]:
    """Write table.md, table.tex, table.csv and report.html; empty cells come with the command that fills them."""
    tables = build_tables(comparison.plan, comparison.results())
    missing = len(comparison.missing())
    unfinished = f"{missing} cells are not made yet; this fills them: {command}" if missing else ""
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
    _page(tables, title, command, unfinished).write(out / "report.html")
    return tables


def _page(tables: Sequence[ComparisonTable], title: str, command: str, unfinished: str) -> Report:
    report = Report(title)
    report.paragraph(f"Made by: {command}", note=True)
    if unfinished:
        report.paragraph(unfinished)
    for table in tables:
        report.heading(f"{table.data}, {', '.join(table.splits)}")
        rows = [[name, *("" if cell is None else cell.text() for cell in cells)] for name, cells in table.rows()]
        bold = frozenset(
            (number, column)
            for number, (_, cells) in enumerate(table.rows())
            for column, cell in enumerate(cells, 1)
            if cell is not None and cell.best
        )
        report.table(table.header, rows, bold=bold)
        report.paragraph(table.note, note=True)
        full = {name: cells for name, cells in table.rows() if None not in cells}
        if full:
            values = {
                name: [(c.interval.mean, c.interval.half_width) for c in cells if c is not None]
                for name, cells in full.items()
            }
            report.figure(bars_figure(table.header[1:], values))
    return report

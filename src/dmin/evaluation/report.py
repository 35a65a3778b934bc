"""Reports: a self-contained HTML page (no script, nothing fetched), and the files that a comparison writes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from dmin.errors import printable
from dmin.evaluation.comparison import Comparison
from dmin.evaluation.figures import bars_figure, svg_text
from dmin.evaluation.tables import ComparisonTable, build_tables, to_costs, to_csv, to_latex, to_markdown
from dmin.files import write_atomic

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1f2933; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; margin: .5rem 0; } th, td { padding: .3rem .8rem; text-align: left; }
th { border-bottom: 2px solid #1f2933; } td { border-bottom: 1px solid #d5dbe1; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { max-width: 100%; height: auto; } .note { color: #52606d; font-size: .9rem; }
"""


class Report:
    """Collects sections and writes them as one page."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []

    def heading(self, text: str) -> None:
        """Begin a section."""
        self._parts.append(f"<h2>{_html(text)}</h2>")

    def paragraph(self, text: str, *, note: bool = False) -> None:
        """Add a paragraph; a note is set smaller."""
        self._parts.append(f'<p class="note">{_html(text)}</p>' if note else f"<p>{_html(text)}</p>")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], *, bold: frozenset[tuple[int, int]]) -> None:
        """Add a table; `bold` names the (row, column) of cells to stress; all columns but the first are numbers."""
        head = "".join(f"<th>{_html(cell)}</th>" for cell in header)
        lines = []
        for number, row in enumerate(rows):
            cells = []
            for column, cell in enumerate(row):
                text = f"<b>{_html(cell)}</b>" if (number, column) in bold else _html(cell)
                cells.append(f'<td class="number">{text}</td>' if column else f"<td>{text}</td>")
            lines.append("<tr>" + "".join(cells) + "</tr>")
        self._parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>")

    def items(self, lines: Sequence[str]) -> None:
        """Add a list."""
        self._parts.append("<ul>" + "".join(f"<li>{_html(line)}</li>" for line in lines) + "</ul>")

    def figure(self, figure: Figure) -> None:
        """Add a picture."""
        self._parts.append(f"<figure>{svg_text(figure)}</figure>")

    def write(self, path: Path) -> None:
        """Write the page, atomically."""
        write_atomic(
            path,
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{_html(self._title)}</title><style>{_STYLE}</style></head>\n"
            f"<body><h1>{_html(self._title)}</h1>\n" + "\n".join(self._parts) + "\n</body></html>\n",
        )


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


def _html(value: object) -> str:
    return escape(printable(value))

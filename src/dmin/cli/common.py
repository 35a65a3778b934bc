"""What the verbs share: warnings on standard error, tables, lists of numbers."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from dmin.errors import ConfigError

if TYPE_CHECKING:
    from dmin.evaluation import Cell
    from dmin.evaluation.tables import ComparisonTable


def warn(message: str) -> None:
    """Say what deserves a look, on standard error."""
    typer.echo(f"note: {message}", err=True)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print the library's own warnings as notes, without file and line; leave others' as they are."""
    before = warnings.showwarning

    def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        if category is UserWarning:
            warn(str(message))
        else:
            before(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


def numbers(text: str, option: str) -> list[int]:
    """Parse "5,10"."""
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigError(f"{option} {text!r}: numbers divided by commas are needed, like 5,10") from error
    if min(values) < 1:
        raise ConfigError(f"{option} {text!r}: every number must be at least 1")
    return values


def rates(text: str, option: str) -> list[float]:
    """Parse "0,0.15,0.5"; each from 0 to below 1, and so that strangers do not outnumber the queries."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigError(f"{option} {text!r}: numbers divided by commas are needed, like 0,0.15,0.5") from error
    if not all(0 <= value <= 0.5 for value in values):
        raise ConfigError(f"{option} {text!r}: every number must lie between 0 and 0.5")
    return values


def reject_value(text: str | None) -> Any:
    """Parse --reject: a number or "auto"."""
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(f"--reject {text!r}: a number between -1 and 1, or auto") from error


def is_main_process() -> bool:
    """False in the helpers that torchrun or accelerate started."""
    import os

    return int(os.environ.get("RANK", "0")) == 0


def print_cells(cells: Sequence[Cell], title: str, what: str = "classes never trained on") -> None:
    """Print accuracies in the paper's layout: methods down, settings across."""
    from rich.console import Console
    from rich.table import Table

    from dmin.methods import method_class

    settings = list(dict.fromkeys((cell.way, cell.shot) for cell in cells))
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("method")
    for way, shot in settings:
        table.add_column(f"{way}-way {shot}-shot", justify="right")
    best = {
        setting: max(cell.results.interval.mean for cell in cells if (cell.way, cell.shot) == setting)
        for setting in settings
    }
    for name in dict.fromkeys(cell.method for cell in cells):
        row = [method_class(name).title]
        for setting in settings:
            cell = next(c for c in cells if c.method == name and (c.way, c.shot) == setting)
            interval = cell.results.interval
            text = interval.percent()
            row.append(f"[bold]{text}[/bold]" if interval.mean == best[setting] else text)
        table.add_row(*row)
    episodes = len(cells[0].results.accuracies)
    table.caption = f"accuracy in % with its 95 % interval over {episodes} episodes of {what}"
    Console(file=sys.stdout, width=max(100, Console().width)).print(table)


def print_tables(tables: Sequence[ComparisonTable]) -> None:
    """Print comparison tables, best in bold."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(file=sys.stdout, width=max(110, Console().width))
    for content in tables:
        title = f"{content.data}, {', '.join(content.splits)}"
        table = Table(title=title, title_justify="left", title_style="bold")
        for number, column in enumerate(content.header):
            table.add_column(column, justify="right" if number else "left")
        for name, cells in content.rows():
            texts = ["" if c is None else f"[bold]{c.text()}[/bold]" if c.best else c.text() for c in cells]
            table.add_row(escape(name), *texts)
        console.print(table)
        console.print(content.note, style="dim", highlight=False)

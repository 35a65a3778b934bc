"""What the commands share: the classifier of a command, warnings, tables, lists of numbers."""

from __future__ import annotations

import os
import sys
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from dmin.errors import ConfigError, DataError, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dmin.classifier import FewShotClassifier
    from dmin.evaluation import Cell
    from dmin.evaluation.tables import ComparisonTable


def echo(message: str, *, err: bool = False, nl: bool = True) -> None:
    """Print on standard output or error; control characters in it, but for ends of lines and tabs, are escaped."""
    typer.echo(printable(message, keep="\n\t"), err=err, nl=nl)


def warn(message: str) -> None:
    """Print a note on standard error."""
    echo(f"note: {printable(message)}", err=True)


def print_table(table: Table, *, note: str = "") -> None:
    """Print a table that fits the terminal: lines are not broken; columns that do not fit go below, in another table.

    Where output is no terminal, it is as wide as it needs to be.
    """
    from rich.console import Console

    console = Console(file=sys.stdout)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(file=sys.stdout, width=10_000)
    for part in fitting_tables(table, console):
        console.print(part)
    if note:
        echo("\n".join(textwrap.wrap(printable(note), min(console.width, 120))))


def fitting_tables(table: Table, console: Console) -> Iterator[Table]:
    """The table if it fits the console's width, else tables of as many of its columns as do, each with the first one."""
    from copy import copy

    from rich.measure import Measurement

    for column in table.columns:
        column.no_wrap = True
    first, *others = table.columns
    while others:
        part, taken = copy(table), 0
        for taken in range(len(others), 0, -1):
            part.columns = [first, *others[:taken]]
            if Measurement.get(console, console.options.update(max_width=10_000), part).maximum <= console.width:
                break
        else:
            for column in part.columns:  # one column alone does not fit: break its lines after all
                column.no_wrap = False
            taken = 1
        yield part
        others = others[max(1, taken) :]
        table.title = None
    if len(table.columns) == 1:
        yield table


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print the library's own warnings as notes, without file and line; leave those of other libraries."""
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
        raise ConfigError(f"{option} {text!r}: numbers separated by commas are needed, like 5,10") from error
    if min(values) < 1:
        raise ConfigError(f"{option} {text!r}: every number must be at least 1")
    return values


def sizes(text: str | None) -> tuple[int, ...] | None:
    """Parse --split-sizes, "40/12/14"."""
    return tuple(numbers(text.replace("/", ","), "--split-sizes")) if text else None


def names(text: str | None) -> list[str]:
    """Parse "dmin,nearest"."""
    return [part.strip() for part in text.split(",") if part.strip()] if text else []


def rates(text: str, option: str) -> list[float]:
    """Parse "0,0.15,0.5"; each from 0 to 0.5, so that out-of-scope queries do not outnumber the others."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigError(f"{option} {text!r}: numbers separated by commas are needed, like 0,0.15,0.5") from error
    if not all(0 <= value <= 0.5 for value in values):
        raise ConfigError(f"{option} {text!r}: every number must lie between 0 and 0.5")
    return values


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Parse --set: `["stage2.patience=5"]` -> `{"stage2.patience": 5}`; values are read as YAML."""
    from dmin.data.yaml_documents import parse_yaml

    parsed = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting!r}: KEY=VALUE is needed, like stage2.patience=5")
        try:
            parsed[key.strip()] = parse_yaml(value, "the value")
        except DataError as error:
            raise ConfigError(f"--set {setting[:100]!r}: {error}") from error
    return parsed


def reject_value(text: str | None) -> float | Literal["auto"] | None:
    """Parse --reject: a number or "auto"."""
    if text is None:
        return None
    if text == "auto":
        return "auto"
    wrong = ConfigError(f"--reject {text!r}: a number between -1 and 1, or auto")
    try:
        value = float(text)
    except ValueError as error:
        raise wrong from error
    if not -1 <= value <= 1:
        raise wrong
    return value


def open_classifier(
    examples: Path | None,
    model: str,
    *,
    text_column: str = "text",
    label_column: str = "label",
    encoding: str = "utf-8",
    fallback: bool = False,
    names: bool | None = None,
    keep_base: bool = False,
    reject: str | None = None,
    unknown: str = "unknown",
    device: str | None = None,
    backend: str = "auto",
    encoder: str | None = None,
) -> FewShotClassifier:
    """Fit a classifier on a file of examples, or open one that needs none: saved, or trained with --all-classes."""
    from dmin.classifier import FewShotClassifier
    from dmin.data.labelled import read_corpus
    from dmin.model import answers_own_classes

    threshold = reject_value(reject)
    if (Path(model) / "classifier.json").is_file():
        if examples is not None:
            raise ConfigError(f"{model} is a saved classifier with examples of its own: leave out --examples")
        if encoder is not None:
            raise ConfigError(f"{model} is a saved classifier with an encoder of its own: leave out --encoder")
        loaded = FewShotClassifier.load(model, device=device)
        if threshold is not None:
            loaded.set_params(reject=threshold, unknown_label=unknown)
        return loaded
    if examples is None and not answers_own_classes(model):
        raise ConfigError(
            "--examples is needed: a file of examples for each class (a model trained with --all-classes needs none)"
        )
    columns = {"text_column": text_column, "label_column": label_column, "encoding": encoding}
    corpus = read_corpus(examples, fallback=fallback, **columns) if examples else None
    classifier = FewShotClassifier(
        model,
        encoder=encoder,
        use_names="auto" if names is None else names,
        keep_base=keep_base,
        reject=threshold,
        unknown_label=None if threshold is None else unknown,  # without refusal a class may have this name
        device=device,
        backend=backend,
    )
    if threshold is not None and unknown in (corpus.by_class if corpus else classifier.base_classes_):
        raise ConfigError(f"--unknown {unknown!r}: a class has this name too; give refused texts another label")
    return classifier.fit(corpus.examples) if corpus else classifier.open()


def is_main_process() -> bool:
    """False in the other processes that torchrun or accelerate started."""
    return int(os.environ.get("RANK", "0")) == 0


def print_cells(cells: Sequence[Cell], title: str, what: str = "classes never trained on") -> None:
    """Print accuracies in the paper's layout: methods down, settings across."""
    from rich.markup import escape
    from rich.table import Table

    from dmin.methods import method_class

    settings = list(dict.fromkeys((cell.way, cell.shot) for cell in cells))
    table = Table(title=escape(printable(title)), title_justify="left", title_style="bold")
    table.add_column("method")
    for way, shot in settings:
        table.add_column(f"{way}-way {shot}-shot", justify="right")
    best = {
        setting: max(cell.results.interval.mean for cell in cells if (cell.way, cell.shot) == setting)
        for setting in settings
    }
    for name in dict.fromkeys(cell.method for cell in cells):
        row = [escape(printable(method_class(name).title))]
        for setting in settings:
            cell = next(c for c in cells if c.method == name and (c.way, c.shot) == setting)
            interval = cell.results.interval
            text = interval.percent()
            row.append(f"[bold]{text}[/bold]" if interval.mean == best[setting] else text)
        table.add_row(*row)
    episodes = len(cells[0].results.accuracies)
    print_table(table, note=f"accuracy in % with its 95 % confidence interval over {episodes} episodes of {what}")


def print_tables(tables: Sequence[ComparisonTable]) -> None:
    """Print comparison tables, best in bold."""
    from rich.markup import escape
    from rich.table import Table

    for content in tables:
        title = escape(printable(f"{content.data}, {', '.join(content.splits)}"))
        table = Table(title=title, title_justify="left", title_style="bold")
        for number, column in enumerate(content.header):
            table.add_column(column, justify="right" if number else "left")
        for name, cells in content.rows():
            texts = ["" if c is None else f"[bold]{c.text()}[/bold]" if c.best else c.text() for c in cells]
            table.add_row(escape(printable(name)), *texts)
        print_table(table, note=content.note)

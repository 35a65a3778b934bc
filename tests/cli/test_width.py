"""Tables fit the terminal: no broken lines at 80 columns, and as wide as needed in a file."""

from __future__ import annotations

import pytest
from rich.console import Console
from rich.table import Table

from dmin.cli.app import run
from dmin.cli.common import fitting_tables, print_cells, print_table
from dmin.evaluation.protocol import Cell, EpisodeResults


def table(columns: int, width: int = 12) -> Table:
    made = Table(title="results")
    made.add_column("method")
    for number in range(columns):
        made.add_column(f"column {number}", justify="right")
    made.add_row("nearest prototype", *(f"{number}".rjust(width, "x") for number in range(columns)))
    return made


@pytest.mark.parametrize("width", [40, 80, 100, 200])
@pytest.mark.parametrize("columns", [1, 4, 9])
def test_every_column_is_shown_once_and_no_line_is_broken(width: int, columns: int) -> None:
    console = Console(width=width, force_terminal=True, color_system=None)
    with console.capture() as captured:
        for part in fitting_tables(table(columns), console):
            console.print(part)
    output = captured.get()
    assert max(map(len, output.splitlines())) <= width
    for number in range(columns):
        assert output.count(f"column {number}") == 1 and output.count(f"{number}".rjust(12, "x")) == 1
    assert "nearest prototype" in output and "…" not in output


def test_a_column_that_is_too_wide_is_broken_after_all() -> None:
    console = Console(width=40, force_terminal=True, color_system=None)
    with console.capture() as captured:
        for part in fitting_tables(table(2, width=60), console):
            console.print(part)
    assert max(map(len, captured.get().splitlines())) <= 40 and captured.get().count("column") == 2


def test_in_a_file_a_table_is_as_wide_as_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table(table(12), note="one\x1b note")
    output = capsys.readouterr().out
    assert output.count("method") == 1 and "column 11" in output and "one\\x1b note" in output


@pytest.mark.parametrize("shots", [(1, 5), (1, 2, 5, 10)])
def test_accuracies_at_80_columns(
    shots: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `dmin demo` and `dmin evaluate` print them."""
    monkeypatch.setenv("COLUMNS", "80")
    accuracies = [0.5, 0.75, 1.0] * 100
    cells = [
        Cell(method, way, shot, EpisodeResults(accuracies, {}))
        for method in ("dmin-plus", "nearest")
        for way in (5, 10)
        for shot in shots
    ]
    print_cells(cells, "starter, classes never trained on")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    for way in (5, 10):
        for shot in shots:
            assert sum(f"{way}-way {shot}-shot" in line for line in lines) == 1  # a heading that is not broken
    assert any("nearest prototype" in line and "75.0 ± " in line for line in lines)


def test_data_list_at_80_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["data", "list"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80

"""A progress bar on standard error for work a person waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from dmin.errors import printable


class Advance(Protocol):
    """Says that some more steps are done; named figures are shown beside the bar."""

    def __call__(self, steps: int = 1, **figures: str) -> None: ...


def _silent(steps: int = 1, **figures: str) -> None:
    """Show nothing."""


@contextmanager
def progress(
    description: str, total: int | None, *, unit: str = "it", done: int = 0, show: bool = True
) -> Iterator[Advance]:
    """Show a bar with speed, time left and the figures given to `advance`, where standard error is a terminal.

    What does not fit the terminal's width is left out: figures first, then the speed.

    Args:
        description: what is being done.
        total: number of steps; None when it is not known.
        unit: what a step is, for the speed.
        done: steps done before (a resumed run).
        show: False shows nothing.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not show or not console.is_terminal:
        yield _silent
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    title = printable(description)
    bar_width, room = _room(console.width, title, total)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=bar_width),
        MofNCompleteColumn(),
        TextColumn("{task.fields[beside]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=total, completed=done, beside="")
        shown: dict[str, str] = {}

        def advance(steps: int = 1, **figures: str) -> None:
            bar.advance(task, steps)
            shown.update(figures)
            speed = bar.tasks[task].speed
            parts = [f"{speed:.0f} {unit}/s"] if speed else []
            bar.update(task, beside=_fitting([*parts, *(f"{name} {value}" for name, value in shown.items())], room))

        yield advance


def _room(width: int, title: str, total: int | None) -> tuple[int, int]:
    """The width of the bar, and the characters that speed and figures may take in a terminal of `width` columns."""
    counts = 2 * len(str(total)) + 1 if total is not None else 12
    fixed = len(title) + counts + len("0:00:00") + 4  # columns stand one space apart
    bar = min(30, max(5, (width - fixed) // 3))
    return bar, max(0, width - fixed - bar)


def _fitting(parts: Sequence[str], room: int) -> str:
    """As many of the parts, from the first, as fit; one that does not is left out whole, not cut."""
    line = ""
    for part in map(printable, parts):
        longer = f"{line} {part}" if line else part
        if len(longer) <= room:
            line = longer
    return line

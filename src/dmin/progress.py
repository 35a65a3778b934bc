"""A progress bar on standard error for work a person waits for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


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

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(description, total=total, completed=done, speed="", figures="")

        def advance(steps: int = 1, **figures: str) -> None:
            bar.advance(task, steps)
            speed = bar.tasks[task].speed
            bar.update(task, speed=f"{speed:.0f} {unit}/s" if speed else "")
            if figures:
                bar.update(task, figures=" ".join(f"{name} {value}" for name, value in figures.items()))

        yield advance

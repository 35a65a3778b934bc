"""Progress bars fit the terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from dmin.progress import progress

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.mark.parametrize("width", [50, 60, 80, 120])
def test_a_bar_fits_the_width_and_drops_figures_whole(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    made: list[Console] = []

    def console(**_: object) -> Console:
        made.append(Console(file=shown, force_terminal=True, width=width, legacy_windows=False))
        return made[-1]

    monkeypatch.setattr("rich.console.Console", console)
    with progress("stage 2: episodes", 1000, unit="episodes") as advance:
        for _ in range(3):
            advance(300, loss="0.1234", accuracy="0.98", validation="0.87654321")
    lines = [line.strip() for line in ESCAPES.sub("", shown.getvalue()).replace("\r", "\n").split("\n") if line.strip()]
    assert lines and max(map(len, lines)) <= width
    assert "stage 2: episodes" in lines[-1] and "900/1000" in lines[-1] and "…" not in lines[-1]
    assert re.search(r"\d:\d\d:\d\d|-:--:--", lines[-1])  # the time left
    for figure in re.findall(r"(?:loss|accuracy|validation) [0-9.]+", lines[-1]):
        assert figure in ("loss 0.1234", "accuracy 0.98", "validation 0.87654321")
    assert ("loss 0.1234" in lines[-1]) or width < 120  # the speed stands first, and here it is a large number


def test_control_characters_do_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr("rich.console.Console", lambda **_: console)
    with progress("a\x1b[31m[bold]b", 2) as advance:
        advance(1, name="x\x07")
    assert r"a\x1b[31m[bold]b" in shown.getvalue() and "\x07" not in shown.getvalue()

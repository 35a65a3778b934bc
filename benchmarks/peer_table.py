"""Figures of the peers as Markdown: one table a set, an extrapolated figure marked as such, a failure with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NAMES = (
    "ready, s (with loading)", "ready, processor s", "one class more, s", "texts/s", "texts/processor s", "one text, ms",
    "peak MB", "accuracy, %",
)  # fmt: skip
COLUMNS = len(NAMES)
HEADER = ["| | " + " | ".join(NAMES) + " |", "|---|" + "---:|" * COLUMNS]


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows of one set; each has a "title" and a "result", a "failure", an "extrapolated", or nothing yet."""
    return [*HEADER, *(line(row) for row in rows)]


def line(row: Mapping[str, Any]) -> str:
    """One row."""
    if row.get("failure"):
        cells = [f"did not run: {row['failure']}", *[""] * (COLUMNS - 1)]
    elif row.get("extrapolated"):
        cells = extrapolated_cells(row["extrapolated"])
    elif row.get("result"):
        cells = result_cells(row["result"])
    else:
        cells = ["not measured yet", *[""] * (COLUMNS - 1)]
    return f"| {row['title']} | " + " | ".join(cells) + " |"


def result_cells(result: Mapping[str, Any]) -> list[str]:
    """What was measured."""
    alone, loading = result["seconds_ready"], seconds(result["seconds_ready_with_loading"])
    return [
        f"{seconds(alone)} ({loading})" if alone is not None else f"({loading})",
        seconds(result["processor_seconds_ready_with_loading"]),
        seconds(result["seconds_add_class"]),
        f"{result['texts_per_second']:.0f}",
        f"{result['texts_per_processor_second']:.0f}",
        f"{result['milliseconds_one_text']:.0f}",
        f"{result['peak_megabytes']:.0f}",
        percent(result["accuracy"], result["tests"]),
    ]


def extrapolated_cells(figures: Mapping[str, float]) -> list[str]:
    """What was not measured, but reckoned from ten classes."""
    clock, processor = (f"≈ {duration(figures[name])} (extrapolated)" for name in ("seconds", "processor_seconds"))
    return [clock, processor, clock, *[""] * (COLUMNS - 3)]


def seconds(value: float) -> str:
    """Three digits that matter."""
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def duration(value: float) -> str:
    """A long time, in the unit that one would say it in."""
    for unit, size in (("h", 3600), ("min", 60)):
        if value >= 2 * size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.0f} s"


def percent(share: float, count: int) -> str:
    """A share with the half width of its 95 % interval."""
    return f"{100 * share:.1f} ± {196 * (share * (1 - share) / count) ** 0.5:.1f}"

"""The paper's table at a glance."""

from __future__ import annotations

from dmin.evaluation.raw import RawCell
from reproduce.paper_overview import given_table, overview, state
from reproduce.paper_plan import NEEDED, cells
from reproduce.paper_rows import ROWS
from tests.reproduce.test_paper_table import line

MAIN = [name for name, row in ROWS.items() if row.part == "main" and not row.published_only]


def column(data: str, best: str) -> list[RawCell]:
    """All rows have half of the answers right, one all of them."""
    return [line(data, "fair-01", name, [50 if name == best else 25]) for name in MAIN]


def test_means_and_ranks_are_over_the_sets_that_have_every_row() -> None:
    lines = [*column("hwu64", "lwof"), *column("liu54", "dmin"), *column("debian", "dmin")[:-1]]
    shown = overview(lines)
    assert "| | 5-way 1-shot, 2 sets |" in shown and "10-way" not in shown
    assert "| LwoF | 75.0 (3.5) |" in shown  # first, and one of nine that share the places from 2 to 10
    assert "| Rel. Net | 50.0 (6.0) |" in shown and overview([]) == ""


def test_rows_with_equally_many_right_answers_share_a_rank() -> None:
    counts = [[31, 17, 42], [42, 31, 17], [17, 42, 31]]  # their means differ in the last bit
    lines = [line("hwu64", "fair-01", name, counts[place % 3]) for place, name in enumerate(MAIN)]
    shown = overview(lines)
    assert shown.count("60.0 (5.5) |") == len(MAIN)


def test_what_names_and_unlabelled_queries_add_is_shown_on_splits_that_have_all_rows() -> None:
    rows = [row.table_row.method for row in ROWS.values() if row.part == "names"]
    lines = [
        line("hwu64", "fair-01", row + ending, [right], shot=shot)
        for row in rows
        for ending, right in (("", 20), ("+names", 30), ("+unlabelled", 25))
        for shot in (1, 5)
    ]
    shown = given_table([*lines, line("liu54", "fair-01", "dmin", [50])])
    assert "| 1 sets, 1 splits | 1-shot | 1-shot with names |" in shown
    assert "| DMIN | 40.0 | 60.0 | 50.0 | 40.0 | 60.0 | 50.0 |" in shown and given_table(lines[1:]) == ""


def test_what_is_there_is_counted_by_what_the_comparison_needs() -> None:
    plans = [plan for plan in cells() if plan.identity[0] == "debian"]
    first = next(plan.identity for plan in plans if plan.rank[0] == 0)
    shown = state(plans, {first})
    assert len(shown.splitlines()) == 2 + len(NEEDED)
    assert f"| {NEEDED[0]} | 40 | 1 |" in shown and f"| {NEEDED[6]} | 0 | 0 |" in shown  # no tuned encoder on debian


def test_rows_on_two_layers_are_ranked_among_themselves() -> None:
    rows = [name for name, row in ROWS.items() if row.part == "layers"]
    lines = [line("hwu64", "fair-01", name, [50 if name.startswith("lwof") else 25]) for name in rows]
    assert "| LwoF on two layers | 100.0 (1.0) |" in overview(lines, "layers") and overview(lines) == ""

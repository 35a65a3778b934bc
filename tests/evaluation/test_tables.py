"""Tables: the numbers, the marks and the four forms."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from dmin.evaluation.bench import JobResult
from dmin.evaluation.comparison_plan import ComparisonPlan, Job, TableRow
from dmin.evaluation.statistics import mean_interval, split_test
from dmin.evaluation.tables import ComparisonTable, build_tables, to_costs, to_csv, to_latex, to_markdown
from dmin.training import load_config

ROWS = (
    TableRow("dmin", "dmin"),
    TableRow("worse", "nearest", title="worse_row"),
    TableRow("same", "nearest"),
    TableRow("better", "lwof"),
)


def made_up(splits: tuple[str, ...] = ("s1",)) -> tuple[ComparisonTable, list[JobResult]]:
    plan = ComparisonPlan(load_config(), ("starter",), splits, ROWS, (5,), (1, 5), 1, 100)
    random = np.random.default_rng(0)
    results = []
    for split in splits:
        for shot in (1, 5):
            base = random.normal(0.8, 0.05, 100)
            for row, shift in zip(ROWS, (0.0, -0.05, 0.0, 0.05), strict=True):
                values = base + shift + random.normal(0, 0.01, 100)
                results.append(
                    JobResult(
                        Job("starter", split, 0, row, 5, shot),
                        split,
                        row.title or row.name,
                        values.tolist(),
                        "h",
                        2,
                        100,
                        5,
                    )
                )
    results = [r for r in results if not (r.job.row.name == "same" and r.job.shot == 5)]  # an unfinished cell
    return build_tables(plan, results)[0], results


def table(splits: tuple[str, ...] = ("s1",)) -> ComparisonTable:
    return made_up(splits)[0]


@pytest.mark.parametrize("splits", [("s1",), ("s1", "s2", "s3")])
def test_marks_say_who_is_better(splits: tuple[str, ...]) -> None:
    cells = table(splits).cells
    assert cells["worse", (5, 1)].mark == "**" and cells["better", (5, 1)].mark == "°"
    assert cells["dmin", (5, 1)].mark == "" and cells["dmin", (5, 1)].p_value is None
    assert cells["better", (5, 1)].best and not cells["dmin", (5, 1)].best
    assert ("same", (5, 5)) not in cells
    assert cells["dmin", (5, 1)].interval.mean == pytest.approx(0.8, abs=0.03)


def test_several_splits_are_never_pooled_by_episode() -> None:
    """The interval and the tests of three splits rest on three means, not on 300 episodes."""
    found, results = made_up(("s1", "s2", "s3"))
    means = {
        name: [r.mean for r in results if r.job.row.name == name and r.job.shot == 1] for name in ("dmin", "worse")
    }
    assert found.cells["dmin", (5, 1)].interval == mean_interval(means["dmin"])
    assert found.cells["worse", (5, 1)].p_value == pytest.approx(split_test(means["dmin"], means["worse"]))


def test_markdown_latex_csv_and_costs() -> None:
    made = table()
    markdown = to_markdown(made)
    assert "| method | 5-way 1-shot | 5-way 5-shot |" in markdown and "**" in markdown
    assert any(line.startswith("| same |") and line.rstrip().endswith("|  |") for line in markdown.splitlines())
    latex = to_latex(made)
    assert r"\toprule" in latex and r"\textbf{" in latex and r"worse\_row" in latex and "--" in latex
    assert latex.count(r"\\") == 2 + len(ROWS)
    rows = list(csv.DictReader(io.StringIO(to_csv(made))))
    assert len(rows) == 7 and {row["row"] for row in rows} == {"dmin", "worse", "same", "better"}
    assert 0 <= float(rows[0]["accuracy"]) <= 1 and rows[0]["p_t"] == ""
    assert "2 s, 100 MB" in to_costs(made)

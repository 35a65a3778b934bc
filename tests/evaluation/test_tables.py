"""Tables: the numbers, the marks and the four forms."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmin.evaluation.bench import JobResult
from dmin.evaluation.comparison_plan import ComparisonPlan, Job, TableRow
from dmin.evaluation.report import comparison_page
from dmin.evaluation.statistics import holm, paired_test, split_interval, split_test
from dmin.evaluation.table_tests import row_tests
from dmin.evaluation.tables import ComparisonTable, build_tables, to_costs, to_csv, to_latex, to_markdown
from dmin.training import load_config

ROWS = (
    TableRow("dmin", "dmin"),
    TableRow("worse", "nearest", title="worse_row"),
    TableRow("same", "nearest"),
    TableRow("better", "lwof"),
)


def made_up(splits: tuple[str, ...] = ("s1",)) -> tuple[ComparisonTable, list[JobResult]]:
    plan = ComparisonPlan(load_config(), ("starter",), splits, ROWS, (5,), (1, 5), 1, 100, reference="dmin")
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
                        20,
                        10,
                    )
                )
    results = [r for r in results if not (r.job.row.name == "same" and r.job.shot == 5)]  # an unfinished cell
    return build_tables(plan, results)[0], results


def table(splits: tuple[str, ...] = ("s1",)) -> ComparisonTable:
    return made_up(splits)[0]


@pytest.mark.parametrize("splits", [("s1",), ("s1", "s2", "s3", "s4")])
def test_marks_say_who_is_better(splits: tuple[str, ...]) -> None:
    cells = table(splits).cells
    assert cells["worse", (5, 1)].mark == "↓" and cells["better", (5, 1)].mark == "↑"
    assert cells["dmin", (5, 1)].mark == "" and cells["dmin", (5, 1)].test is None
    assert cells["better", (5, 1)].best and not cells["dmin", (5, 1)].best
    assert ("same", (5, 5)) not in cells
    assert cells["dmin", (5, 1)].interval.mean == pytest.approx(0.8, abs=0.03)


def test_several_splits_are_never_pooled_by_episode() -> None:
    """The interval and the tests of three splits rest on three means, not on 300 episodes."""
    found, results = made_up(("s1", "s2", "s3"))
    own = {name: [r for r in results if r.job.row.name == name and r.job.shot == 1] for name in ("dmin", "worse")}
    means = {name: [result.mean for result in of_row] for name, of_row in own.items()}
    noise = noise_of(own["dmin"], own["worse"])
    assert found.cells["dmin", (5, 1)].interval == split_interval(means["dmin"], 10 / 20)
    test = found.cells["worse", (5, 1)].test
    assert test is not None and test.worse == pytest.approx(split_test(means["dmin"], means["worse"], 0.5, noise))
    assert found.cells["dmin", (5, 1)].runs == tuple(means["dmin"])


def test_holm_runs_over_the_whole_table() -> None:
    """All rows and columns are one family, both directions of each: five tests here, one cell being unfinished."""
    found, results = made_up()
    by_cell = {(r.job.row.name, r.job.shot): r.accuracies for r in results}
    raw = {
        cell: min(1.0, 2 * paired_test(by_cell["dmin", cell[1]], values).permutation_p)
        for cell, values in by_cell.items()
        if cell[0] != "dmin"
    }
    assert len(raw) == 5
    for (name, shot), p in holm(raw).items():
        test = found.cells[name, (5, shot)].test
        assert test is not None and test.worse_corrected == pytest.approx(p)


def test_the_note_explains_the_arrows() -> None:
    note = table().note
    assert "↑ significantly better, ↓ significantly worse than the reference row, DMIN" in note
    assert (
        "two-tailed" in note
        and "correction over the 5 tests" in note
        and "permutation" in note
        and "Nadeau" not in note
    )
    assert "Nadeau and Bengio" in table(("s1", "s2")).note


def test_means_and_deviations_as_the_paper_prints_them() -> None:
    assert "as the paper prints" not in to_markdown(table())  # one run has no deviation
    made = table(("s1", "s2", "s3"))
    cell = made.cells["dmin", (5, 1)]
    text = f"{100 * np.mean(cell.runs):.2f} ± {100 * np.std(cell.runs, ddof=1):.2f}"
    assert "as the paper prints" in to_markdown(made) and text in to_markdown(made)
    assert float(next(csv.DictReader(io.StringIO(to_csv(made))))["std"]) == pytest.approx(
        np.std(cell.runs, ddof=1), rel=1e-4
    )


def test_the_settings_of_each_row_stand_under_the_table() -> None:
    """What a search chose is named row by row; rows with their defaults are not in the list."""
    markdown = to_markdown(table())
    listed = markdown.split("method's defaults:")[1]
    assert "- dmin: tau_learning_rate 0.01, memory_capsules 64," in listed and "input_map on" in listed
    assert "- better: stage2.learning_rate 0.0001," in listed and "worse_row" not in listed
    assert "where it found better ones (listed in table.md)" in markdown
    result = replace(made_up()[1][0], title="fine-tune (head)")
    raw = replace(result, job=replace(result.job, row=TableRow("finetune-raw", "finetune", start="raw")))
    plan = ComparisonPlan(load_config(), ("starter",), ("s1",), (raw.job.row,), (5,), (1,), 1, 100, reference="dmin")
    assert build_tables(plan, [raw])[0].titles == {"finetune-raw": "fine-tune (head) (raw encoder)"}


def test_the_page_says_how_many_rows_differ_and_lists_settings(tmp_path: Path) -> None:
    comparison_page([table()], "Comparison", "dmin compare").write(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "dmin is significantly better than another row in 2 cells, and worse in 2." in page
    assert "memory_capsules 64" in page and "the others have their defaults" in page


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


def noise_of(ours: list[JobResult], theirs: list[JobResult]) -> float:
    """Sampling variance of a split's mean difference, by hand."""
    gaps = [np.subtract(a.accuracies, b.accuracies) for a, b in zip(ours, theirs, strict=True)]
    return float(np.mean([gap.var(ddof=1) / len(gap) for gap in gaps]))


def test_rows_are_tested_on_the_splits_that_they_share() -> None:
    _, results = made_up(("s1", "s2", "s3"))
    cells: dict[tuple[str, str, int, int], list[JobResult]] = {}
    for result in results:
        if result.job.shot == 1 and (result.job.row.name != "worse" or result.split_name != "s2"):
            cells.setdefault(("starter", result.job.row.name, 5, 1), []).append(result)
    found = row_tests(cells, "dmin")
    shared = {name: [r for r in cells["starter", name, 5, 1] if r.split_name != "s2"] for name in ("dmin", "worse")}
    means = {name: [result.mean for result in of_row] for name, of_row in shared.items()}
    noise = noise_of(shared["dmin"], shared["worse"])
    assert found["starter", "worse", 5, 1].worse == pytest.approx(split_test(means["dmin"], means["worse"], 0.5, noise))
    cells["starter", "same", 5, 1] = [r for r in cells["starter", "same", 5, 1] if r.split_name == "s2"]
    cells["starter", "dmin", 5, 1] = [r for r in cells["starter", "dmin", 5, 1] if r.split_name != "s2"]
    assert ("starter", "same", 5, 1) not in row_tests(cells, "dmin")  # no split in common

"""The page of the paper's table, made of the ledger alone: tables, corrected tests, means with deviations, a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from dmin.evaluation.bench import JobResult
from dmin.evaluation.raw import RawCell
from dmin.evaluation.statistics import ALPHA, Interval, spread
from dmin.evaluation.table_tests import Place, RowTest, by_split, cell_interval, row_tests
from dmin.methods import method_class
from reproduce.paper_plan import (
    EPISODES,
    NAMED,
    ROWS,
    SETS,
    SETTINGS,
    TUNED,
    TUNED_BASE,
    is_published,
    splits_of,
)

REFERENCES = {"main": "dmin", "ablation": "dmin", "names": "dmin" + NAMED, "tuned": "dmin" + TUNED}  # DMIN of each part
Cells = Mapping[Place, Sequence[JobResult]]


def title_of(row: str) -> str:
    """A row's title; that of a method on a frozen encoder where it has one."""
    known = ROWS[row].table_row
    traits = method_class(known.method).traits
    return (known.title or traits.frozen_title or traits.title) + (" with names" if ROWS[row].part == "names" else "")


def group(cells: Sequence[RawCell], part: str, published: bool) -> dict[Place, list[JobResult]]:
    """The results of one part of the table, by set, row and setting."""
    found: dict[Place, list[JobResult]] = {}
    for cell in cells:
        if cell.row.name in rows_of(part) and is_published(cell.split) == published:
            found.setdefault((cell.data, cell.row.name, cell.way, cell.shot), []).append(cell.result())
    if part != "ablation":
        return found
    compared = {(data, way, shot) for data, row, way, shot in found if row != REFERENCES[part]}
    return {place: results for place, results in found.items() if (place[0], *place[2:]) in compared}


def rows_of(part: str) -> list[str]:
    """The rows of a part of the table; the ablation has the whole network beside what is left of it."""
    return [name for name, row in ROWS.items() if row.part == part or name == REFERENCES[part]]


def cell_text(results: Sequence[JobResult], test: RowTest | None, most: int, best: bool) -> str:
    """As "84.5 ± 0.9↑ (2)": the number in brackets is that of the splits, where others have more."""
    splits = len(by_split(results))
    interval = cell_interval(results)
    mark = ""
    if test is not None:
        mark = "↓" if test.worse_corrected < ALPHA else "↑" if test.better_corrected < ALPHA else ""
    text = f"{100 * interval.mean:.1f}" if interval.half_width != interval.half_width else interval.percent()
    text = f"{text}{mark}"
    return (f"**{text}**" if best else text) + (f" ({splits})" if splits < most else "")


def table_lines(found: Cells, part: str, deviations: bool) -> list[str]:
    """One table per set; with `deviations` the means ± standard deviations over splits and seeds, as the paper has them."""
    tests = row_tests(found, REFERENCES[part])
    header = "| " + " | ".join(["", *(f"{way}-way {shot}-shot" for way, shot in SETTINGS)]) + " |"
    lines: list[str] = []
    for data in SETS:
        rows = [name for name in rows_of(part) if any(place[:2] == (data, name) for place in found)]
        if not rows:
            continue
        lines += [f"### {data}", "", header, "|---|" + "---:|" * len(SETTINGS)]
        columns = {s: {row: found[place] for row in rows if (place := (data, row, *s)) in found} for s in SETTINGS}
        for row in rows:
            texts = [_text(columns[s], row, tests.get((data, row, *s)), deviations) for s in SETTINGS]
            lines.append(f"| {title_of(row)} | " + " | ".join(texts) + " |")
        lines.append("")
    return lines


def _text(column: Mapping[str, Sequence[JobResult]], row: str, test: RowTest | None, deviations: bool) -> str:
    if row not in column:
        return "–"
    if deviations:
        results = column[row]
        runs = [result.mean for result in results]
        mean = sum(runs) / len(runs)
        return Interval(mean, spread(runs)).percent(2) if len(runs) > 1 else f"{100 * mean:.2f}"
    most = max(len(by_split(results)) for results in column.values())
    full = {name: cell_interval(results).mean for name, results in column.items() if len(by_split(results)) == most}
    return cell_text(column[row], test, most, row in full and full[row] == max(full.values()))


FROZEN = (
    "Encoder all-MiniLM-L6-v2, frozen (`tune none`), mean pooling: the same vectors for all rows (ATAML: the same states "
    "of the tokens). At most 1,000 training episodes. "
)
LEARNING = (
    "Encoder all-MiniLM-L6-v2, tuned in both stages (the paper's protocol, `tune full`, `[CLS]`), "
    f"{TUNED_BASE['stage1']['epochs']} epochs in stage 1, at most {TUNED_BASE['stage2']['episodes']} training episodes in "
    "stage 2; settings as the search with the frozen encoder chose them. "
)
CAPTION = (
    "Bold: the highest mean of its column, which alone shows no difference. –: not computed yet, "
    "or not possible (too few classes). ↑ significantly better, ↓ significantly worse than DMIN: p < 0.05, one-tailed, "
    "after Holm's correction over all tests of this section."
)
SEVERAL = (
    " ± is the 95 % confidence interval over class splits, with the variance corrected for the classes that splits share "
    "(Nadeau and Bengio, 2003); a number in brackets says on how many splits a cell stands, where others stand on more. "
    "Tests are over the splits that a row shares with DMIN; where that is one, over its episodes (permutation test)."
)
SINGLE = (
    " ± is the 95 % confidence interval over the episodes of one split; tests are paired by episode (permutation test)."
)


def caption(part: str, several: bool) -> str:
    """What a section's figures are."""
    counted = f"Accuracy in %, {EPISODES} stored test episodes per cell and split, 10 queries per class. "
    return counted + (LEARNING if part == "tuned" else FROZEN) + CAPTION + (SEVERAL if several else SINGLE)


def table_page(cells: Sequence[RawCell], missing: int | None = None) -> str:
    """The page as Markdown."""
    lines = [
        "# The paper's table on nine sets",
        "",
        f"Made by `python -m reproduce.paper_table table` from {len(cells)} cells",
    ]
    left = "" if missing is None else f"; {missing} are missing (`python -m reproduce.paper_table missing` lists them)"
    lines[-1] += f" of the ledger [cells.jsonl](cells.jsonl){left}."
    lines += ["", "![Accuracy of all rows on the nine sets](paper-table.png)", ""]
    for part, published, title in (
        ("main", False, "Class splits with one validation pool per set (fair)"),
        ("main", True, "Class splits that come with the data"),
        ("ablation", True, "DMIN without its parts, splits that come with the data"),
        ("ablation", False, "DMIN without its parts, fair splits"),
        ("names", False, "Rows that get the classes' names, fair splits"),
        ("names", True, "Rows that get the classes' names, splits that come with the data"),
        ("tuned", True, "Encoder tuned in both stages"),
    ):
        found = group(cells, part, published)
        if not found:
            continue
        several = any(len(by_split(results)) > 1 for results in found.values())
        lines += [f"## {title}", "", caption(part, several), ""]
        lines += table_lines(found, part, deviations=False)
        if several:
            lines += ["Mean ± standard deviation over class splits and seeds, as the paper prints its figures:", ""]
            lines += table_lines(found, part, deviations=True)
    lines += settings_lines(cells)
    return "\n".join(lines).rstrip() + "\n"


def settings_lines(cells: Sequence[RawCell]) -> list[str]:
    """The settings of each row that are not the method's defaults, as the search chose them."""
    chosen: dict[tuple[str, str], set[str]] = {}
    for cell in cells:
        if cell.row.settings:
            said = ", ".join(f"{key}={value}" for key, value in sorted(cell.row.settings.items()))
            chosen.setdefault((cell.row.name, said), set()).add(cell.data)
    if not chosen:
        return ["## Settings", "", "Every row has its method's defaults.", ""]
    lines = [
        "## Settings",
        "",
        "Chosen on validation classes; rows that are not here have their method's defaults.",
        "",
    ]
    lines += ["| row | settings | sets |", "|---|---|---|"]
    for (row, said), sets in sorted(chosen.items()):
        lines.append(f"| {title_of(row)} | `{said}` | {'all' if sets >= set(SETS) else ', '.join(sorted(sets))} |")
    return [*lines, ""]


def picture(cells: Sequence[RawCell], path: Path) -> None:
    """Small multiples: one panel per set, one line per row, 5-way 1-shot and 5-shot, all on one split of the set."""
    from dmin.evaluation.figures import save_png

    figure = Figure(figsize=(9, 7.5), layout="constrained")
    axes = figure.subplots(3, 3, sharey=True)
    names = [name for name, row in ROWS.items() if row.part == "main" and not row.published_only]
    for axis, data in zip(axes.flat, SETS, strict=True):
        split = next(iter(splits_of(data)))
        found = {(c.row.name, c.shot): 100 * c.result().mean for c in cells if _drawn(c, data, split)}
        for shot, colour in ((1, "#0f6fb8"), (5, "#b3541e")):
            points = [(found[name, shot], place) for place, name in enumerate(names) if (name, shot) in found]
            axis.scatter([x for x, _ in points], [y for _, y in points], s=16, color=colour, label=f"{shot}-shot")
        axis.set_title(f"{data}, {split}" + ("" if found else ": not computed yet"), fontsize=8)
        axis.set_yticks(range(len(names)), [title_of(name) for name in names], fontsize=7)
        axis.set_ylim(len(names) - 0.5, -0.5)
        axis.tick_params(axis="x", labelsize=7, labelbottom=bool(found))
        axis.grid(linewidth=0.4)
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    figure.suptitle("5-way accuracy in %, 300 test episodes, one class split per set; encoder frozen", fontsize=9)
    save_png(figure, path)


def _drawn(cell: RawCell, data: str, split: str) -> bool:
    return (cell.data, cell.split, cell.way, cell.seed) == (data, split, 5, 0)

"""The page of the paper's table, made of the ledger alone: tables, corrected tests, means with deviations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dmin.evaluation.bench import JobResult
from dmin.evaluation.raw import RawCell
from dmin.evaluation.statistics import Interval, spread
from dmin.evaluation.table_tests import Place, RowTest, by_split, cell_interval, row_tests
from dmin.methods import method_class
from reproduce.paper_captions import HOW_TO_READ, caption
from reproduce.paper_plan import SETS, SETTINGS, is_published, splits_of
from reproduce.paper_rows import LAYERS, NAMED, ROWS, TUNED, UNLABELLED, WRITTEN

# DMIN of each part, and DMIN-plus where there is no DMIN
REFERENCES = {
    "main": "dmin", "ablation": "dmin", "written": WRITTEN, "readings": WRITTEN, "names": "dmin" + NAMED,
    "unlabelled": "dmin" + UNLABELLED, "tuned": "dmin" + TUNED, "layers": "dmin-plus" + LAYERS,
    "plus": "dmin-plus" + LAYERS,
}  # fmt: skip
SECTIONS = (  # part, on splits that come with the data, title
    ("main", False, "Class splits with one validation pool per set (fair)"),
    ("main", True, "Class splits that come with the data"),
    ("ablation", False, "DMIN without its parts, fair splits"),
    ("written", False, "DMIN as written and without its parts, fair splits"),
    ("readings", False, "Other readings of the paper: DMIN as written and one choice at a time, fair splits"),
    ("layers", False, "Two layers of the encoder for all rows, fair splits"),
    ("plus", False, "DMIN-plus without its parts, on two layers, fair splits"),
    ("names", False, "Rows that get the classes' names, fair splits"),
    ("unlabelled", False, "Rows that see the queries as unlabelled texts, fair splits"),
    ("tuned", True, "Encoder tuned in both stages, splits that come with the data"),
)
ABLATIONS = ("ablation", "written", "readings", "plus")  # parts that show one method and changes of it
# What the rows of a part get
GIVEN = {"names": " with names", "unlabelled": " with unlabelled queries", "layers": " on two layers"}
Cells = Mapping[Place, Sequence[JobResult]]


def title_of(row: str) -> str:
    """A row's title; that of a method on a frozen encoder where it has one."""
    known = ROWS[row].table_row
    traits = method_class(known.method).traits
    return (known.title or traits.frozen_title or traits.title) + GIVEN.get(ROWS[row].part, "")


def group(cells: Sequence[RawCell], part: str, published: bool) -> dict[Place, list[JobResult]]:
    """The results of one part of the table, by set, row and setting.

    A column stands on the splits that all its rows have, and on the first training seed, so that its figures can be
    compared. The whole network alone is no column of an ablation.
    """
    found: dict[Place, list[JobResult]] = {}
    for cell in cells:
        if cell.row.name in rows_of(part) and is_published(cell.split) == published and not cell.seed:
            found.setdefault((cell.data, cell.row.name, cell.way, cell.shot), []).append(cell.result())
    columns: dict[tuple[str, int, int], dict[str, list[JobResult]]] = {}
    for (data, row, way, shot), results in found.items():
        columns.setdefault((data, way, shot), {})[row] = results
    kept = {}
    for (data, way, shot), rows in columns.items():
        if not (part in ABLATIONS and set(rows) == {REFERENCES[part]}):
            kept |= {(data, row, way, shot): results for row, results in _on_shared_splits(rows).items()}
    return kept


def _on_shared_splits(rows: Mapping[str, list[JobResult]]) -> dict[str, list[JobResult]]:
    """The results of a column's rows on the splits that all of them have; without any, on the split that most have."""
    splits = {row: {result.split_name for result in results} for row, results in rows.items()}
    shared = set.intersection(*splits.values())
    if not shared:
        every = sorted(set.union(*splits.values()))
        shared = {max(every, key=lambda name: sum(name in there for there in splits.values()))}
    kept = {row: [result for result in results if result.split_name in shared] for row, results in rows.items()}
    return {row: results for row, results in kept.items() if results}


def rows_of(part: str) -> list[str]:
    """The rows of a part of the table; the ablation has the whole network beside what is left of it."""
    return [name for name, row in ROWS.items() if row.part == part or name == REFERENCES[part]]


def cell_text(results: Sequence[JobResult], test: RowTest | None, best: bool) -> str:
    """As "84.5 ± 0.9↑"."""
    text = mean_text(results) + ("" if test is None else test.mark)
    return f"**{text}**" if best else text


def mean_text(results: Sequence[JobResult]) -> str:
    """The mean with its interval; with two splits, whose interval is wider than the scale, with the mean of each."""
    interval = cell_interval(results)
    splits = [100 * sum(values) / len(values) for values in by_split(results).values()]
    if len(splits) == 2:
        return f"{100 * interval.mean:.1f} [{min(splits):.1f}, {max(splits):.1f}]"
    return interval.percent()


def table_lines(found: Cells, part: str, deviations: bool) -> list[str]:
    """One table per set; with `deviations` the means ± standard deviations over splits, as the paper prints its figures."""
    tests = row_tests(found, REFERENCES[part])
    heading = "####" if deviations else "###"
    lines: list[str] = []
    for data in SETS:
        rows = [name for name in rows_of(part) if any(place[:2] == (data, name) for place in found)]
        if not rows:
            continue
        columns = {s: {row: found[place] for row in rows if (place := (data, row, *s)) in found} for s in SETTINGS}
        header = "| " + " | ".join(["", *(_header(s, columns[s]) for s in SETTINGS)]) + " |"
        lines += [f"{heading} {data}", "", header, "|---|" + "---:|" * len(SETTINGS)]
        for row in rows:
            texts = [_text(columns[s], row, tests.get((data, row, *s)), deviations) for s in SETTINGS]
            lines.append(f"| {title_of(row)} | " + " | ".join(texts) + " |")
        lines.append("")
    return lines


def _header(setting: tuple[int, int], column: Mapping[str, Sequence[JobResult]]) -> str:
    """As "5-way 1-shot, 2 splits"."""
    way, shot = setting
    splits = len(by_split(next(iter(column.values())))) if column else 0
    return f"{way}-way {shot}-shot" + (f", {splits} split{'s' if splits > 1 else ''}" if splits else "")


def _text(column: Mapping[str, Sequence[JobResult]], row: str, test: RowTest | None, deviations: bool) -> str:
    if row not in column:
        return "–"
    if deviations:
        return deviation_text([sum(values) / len(values) for values in by_split(column[row]).values()])
    means = {name: cell_interval(results).mean for name, results in column.items()}
    return cell_text(column[row], test, len(means) > 1 and means[row] == max(means.values()))


def deviation_text(runs: Sequence[float]) -> str:
    """The mean of runs, ± their standard deviation where there are several."""
    mean = sum(runs) / len(runs)
    return Interval(mean, spread(runs)).percent(2) if len(runs) > 1 else f"{100 * mean:.2f}"


def seed_lines(cells: Sequence[RawCell]) -> list[str]:
    """Rows whose cells were trained several times: mean ± standard deviation over the trainings, set by set."""
    runs: dict[tuple[str, str, str, int, int], list[float]] = {}
    for cell in cells:
        place = (cell.data, cell.split, cell.row.name, cell.way, cell.shot)
        runs.setdefault(place, []).append(cell.result().mean)
    several = {place: means for place, means in runs.items() if len(means) > 1}
    lines: list[str] = []
    for way, shot in SETTINGS:
        mine = {place[:3]: means for place, means in several.items() if place[3:] == (way, shot)}
        columns = [
            (data, split) for data in SETS for split in splits_of(data) if any(p[:2] == (data, split) for p in mine)
        ]
        if not columns:
            continue
        header = " | ".join(f"{data}, {split}" for data, split in columns)
        lines += [f"| {way}-way {shot}-shot | {header} |", "|---|" + "---:|" * len(columns)]
        for row in (name for name in ROWS if any(place[2] == name for place in mine)):
            texts = [deviation_text(mine[*c, row]) if (*c, row) in mine else "–" for c in columns]
            lines.append(f"| {title_of(row)} | " + " | ".join(texts) + " |")
        lines.append("")
    if not lines:
        return []
    about = (
        "Mean ± standard deviation over the trainings of a cell with seeds 0, 1 and 2, tested on the same episodes: how "
        "much the chance of a training moves a figure. The tables above have seed 0, because not all rows have the others."
    )
    return [about, "", *lines]


def table_page(cells: Sequence[RawCell], missing: tuple[int, int] | None = None) -> str:
    """The page as Markdown.

    Args:
        cells: of the ledger.
        missing: how many cells are missing, of how many that the comparison needs.
    """
    lines = [
        "# The paper's table on nine sets",
        "",
        f"Made by `python -m reproduce.paper_table table` from {len(cells)} cells of the ledger",
        "[cells.jsonl](cells.jsonl).",
    ]
    if missing is not None:
        lines += [
            f"Of the {missing[1]} that the comparison needs, {missing[0]} are missing;",
            "`python -m reproduce.paper_table missing` lists them with their commands, and what would sharpen it.",
        ]
    lines += ["", "![What each row gains over DMIN on the nine sets, 5-way, with intervals](paper-table.png)", ""]
    parts = {
        title: section(found, part) for part, published, title in SECTIONS if (found := group(cells, part, published))
    }
    ends = {"Training seeds": seed_lines(cells), "Settings": settings_lines(cells)}
    sections = parts | {title: said for title, said in ends.items() if said}
    lines += [f"- [{title}](#{anchor(title)})" for title in sections]
    lines += ["", HOW_TO_READ]
    for title, said in sections.items():
        lines += [f"## {title}", "", *said]
    return "\n".join(lines).rstrip() + "\n"


def anchor(title: str) -> str:
    """The anchor of a heading, as renderers of Markdown make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def section(found: Cells, part: str) -> list[str]:
    """One part of the table: its caption, a table per set, and with several splits the deviations."""
    said = caption(part, title_of(REFERENCES[part]) if row_tests(found, REFERENCES[part]) else None)
    lines = [said, ""] if said else []
    lines += table_lines(found, part, deviations=False)
    if any(len(by_split(results)) > 1 for results in found.values()):
        lines += ["### Mean ± standard deviation over class splits, as the paper prints its figures", ""]
        lines += table_lines(found, part, deviations=True)
    return lines


def settings_lines(cells: Sequence[RawCell]) -> list[str]:
    """The settings of each row that are not the method's defaults, as the search chose them."""
    chosen: dict[tuple[str, str], set[str]] = {}
    for cell in cells:
        own = {f"options.{key}": value for key, value in cell.row.options.items()}  # what a row of an ablation changes
        if settings := {**cell.row.settings, **own}:
            said = ", ".join(f"{key}={value}" for key, value in sorted(settings.items()))
            chosen.setdefault((cell.row.name, said), set()).add(cell.data)
    if not chosen:
        return ["Every row has its method's defaults.", ""]
    lines = [
        "Chosen on validation classes, and what a row of an ablation changes; rows that are not here have their method's",
        "defaults.",
        "",
    ]
    lines += ["| row | settings | sets |", "|---|---|---|"]
    for (row, said), sets in sorted(chosen.items()):
        title = title_of(row) + (", encoder tuned" if ROWS[row].part == "tuned" else "")
        lines.append(f"| {title} | `{said}` | {'all' if sets >= set(SETS) else ', '.join(sorted(sets))} |")
    return [*lines, ""]

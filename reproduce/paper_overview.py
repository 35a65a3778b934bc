"""The paper's table at a glance: what is there, means and ranks over the sets, what names and unlabelled queries add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

import numpy as np
from scipy import stats

from dmin.evaluation.raw import RawCell
from dmin.evaluation.table_tests import cell_interval
from reproduce.paper_page import group, title_of
from reproduce.paper_plan import NEEDED, SETS, SETTINGS, CellPlan, is_published, splits_of
from reproduce.paper_rows import NAMED, ROWS, UNLABELLED

Setting = tuple[int, int]
GIVEN = ("", NAMED, UNLABELLED)  # endings of the rows that get nothing, names, or unlabelled queries
KINDS = {
    "banking77": "requests to a bank, 77 intents",
    "clinc150": "requests to an assistant, 150 intents of ten domains",
    "hwu64": "requests to a home assistant, 64 intents",
    "liu54": "the same kind, 54 intents of very uneven size; shares texts with hwu64",
    "stackoverflow": "titles of technical questions by tag",
    "debian": "one-line descriptions of programs by section",
    "goemotions": "short comments by emotion",
    "fortunes": "sayings and short prose by theme",
    "news20": "long posts by topic",
}


def sets_table() -> str:
    """The sets, all in English, with their numbers of classes in the first fair split."""
    lines = ["| set | kind | classes: train / validation / test |", "|---|---|---|"]
    for data in SETS:
        sizes = next(iter(splits_of(data).values()))
        lines.append(f"| {data} | {KINDS[data]} | {' / '.join(map(str, sizes))} |")
    return "\n".join(lines) + "\n"


def state(plans: Sequence[CellPlan], there: Container[tuple[str, str, str, int, int, int]]) -> str:
    """How much of what the comparison needs is in the ledger."""
    needed, found = Counter[int](), Counter[int]()
    for plan in plans:
        if plan.needed:
            needed[plan.rank[0]] += 1
            found[plan.rank[0]] += plan.identity in there
    lines = ["| cells | needed | there |", "|---|---:|---:|"]
    lines += [f"| {said} | {needed[place]} | {found[place]} |" for place, said in enumerate(NEEDED)]
    return "\n".join(lines) + "\n"


def overview(cells: Sequence[RawCell], part: str = "main") -> str:
    """Every row of a part on the fair splits: mean accuracy over the sets and its mean rank among the rows."""
    found = group(cells, part, published=False)
    rows = [name for name, row in ROWS.items() if row.part == part and not row.published_only]
    columns = {}
    for setting in SETTINGS:
        sets = [data for data in SETS if all((data, row, *setting) in found for row in rows)]
        if sets:  # [sets, rows]
            columns[setting] = np.array(
                [[cell_interval(found[(data, row, *setting)]).mean for row in rows] for data in sets]
            )
    if not columns:
        return ""
    header = [f"{way}-way {shot}-shot, {len(values)} sets" for (way, shot), values in columns.items()]
    lines = ["| | " + " | ".join(header) + " |", "|---|" + "---:|" * len(header)]
    # Rounded, because equal counts of right answers may differ in the last bit of their means
    ranks = {setting: stats.rankdata(-values.round(9), axis=1).mean(axis=0) for setting, values in columns.items()}
    for place, row in enumerate(rows):
        texts = [_with_rank(values[:, place].mean(), ranks[setting][place]) for setting, values in columns.items()]
        lines.append(f"| {title_of(row)} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def _with_rank(mean: float, rank: float) -> str:
    return f"{100 * mean:.1f} ({rank:.1f})"


def given_table(cells: Sequence[RawCell]) -> str:
    """5-way: rows that get nothing, the classes' names, or unlabelled queries; on the splits that have all of them."""
    rows = [row.table_row.method for row in ROWS.values() if row.part == "names"]
    means: dict[tuple[str, str], dict[tuple[str, int], float]] = {}  # set and split -> row and shot -> mean
    for cell in cells:
        if cell.way == 5 and cell.seed == 0 and not is_published(cell.split):
            means.setdefault((cell.data, cell.split), {})[cell.row.name, cell.shot] = cell.result().mean
    wanted = {(row + ending, shot) for row in rows for ending in GIVEN for shot in (1, 5)}
    whole = [found for found in means.values() if wanted <= set(found)]
    if not whole:
        return ""
    sets = len({data for (data, _), found in means.items() if wanted <= set(found)})
    titles = [f"{shot}-shot{said}" for shot in (1, 5) for said in ("", " with names", " with unlabelled queries")]
    lines = [f"| {sets} sets, {len(whole)} splits | " + " | ".join(titles) + " |", "|---|" + "---:|" * len(titles)]
    for row in rows:
        texts = [f"{100 * _mean(whole, (row + ending, shot)):.1f}" for shot in (1, 5) for ending in GIVEN]
        lines.append(f"| {title_of(row)} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def _mean(whole: Sequence[Mapping[tuple[str, int], float]], place: tuple[str, int]) -> float:
    return float(np.mean([found[place] for found in whole]))

"""The paper's table on nine sets: fill its ledger cell by cell, make the page from it, list what is missing.

    DMIN_DATA=... python -m reproduce.paper_table run [--needed] [--set debian] [--row dmin] [--split fair-01] [--minutes 5]
    python -m reproduce.paper_table table
    python -m reproduce.paper_table missing [--set debian] [--row dmin]
    DMIN_DATA=... python -m reproduce.paper_table confirm [--row dmin]

`run` fills the cells that are not in the ledger, or that other code or settings filled. `table` writes the page, the claims
and the picture from the ledger alone. `confirm` is for code that changed without changing results: of each row's stale
cells it computes the cheapest one of every way and shot again, and where every episode has the same number of right
answers, the row's stale cells of that way and shot are taken over under their new keys.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dmin.evaluation.raw import RawCell
from dmin.files import write_atomic
from reproduce import paper_ledger, paper_plan
from reproduce.kinds_lines import put_table
from reproduce.paper_claims import claims_page, summary
from reproduce.paper_overview import given_table, overview, sets_table, state
from reproduce.paper_page import table_page
from reproduce.paper_picture import picture
from reproduce.paper_plan import SETS, CellPlan, cells
from reproduce.paper_questions import OF_PLUS

RUNS = Path("runs/paper-table")


def wanted(plans: Sequence[CellPlan], given: argparse.Namespace) -> list[CellPlan]:
    """The cells that the options ask for."""
    asked = {0: given.set, 1: given.split, 2: given.row, 3: given.way}
    return [
        plan
        for plan in plans
        if all(not names or plan.identity[place] in names for place, names in asked.items())
        and (plan.needed or not given.needed)
    ]


def command_of(plan: CellPlan) -> str:
    """The command that fills a cell; what only sharpens the table is filled by the split, with all rows that it lacks."""
    data, split, row, *_ = plan.identity
    command = f"python -m reproduce.paper_table run --set {data} --split {split}"
    return f"{command} --row {row}" if plan.needed else command


def list_missing(plans: Sequence[CellPlan]) -> list[str]:
    """Commands that fill what is missing, with the number of cells of each; those that the comparison needs first."""
    lines = []
    for needed, said in ((True, "the comparison needs"), (False, "would sharpen it (more splits)")):
        mine = [plan for plan in plans if plan.needed == needed]
        if not mine and not needed:
            continue
        commands = Counter(command_of(plan) for plan in mine)
        lines += [f"{len(mine)} cells are missing that {said}"]
        lines += [f"{command}  # {count} cells" for command, count in commands.items()]
    return lines


def make_table(lines: Sequence[RawCell], missing: tuple[int, int] | None, folder: Path) -> None:
    """Write page, claims and picture."""
    write_atomic(folder / "README.md", table_page(lines, missing))
    write_atomic(folder / "claims.md", claims_page(lines))
    picture(lines, folder / "paper-table.png")


def blocks(lines: Sequence[RawCell], plans: Sequence[CellPlan]) -> list[tuple[Path, str, str]]:
    """What stands in other pages, each between its marks: page, name of the marks, text."""
    front, plus = (paper_plan.FOLDER / name for name in ("README.md", "ACCURACY.md"))
    return [
        (front, "state", state(plans, {paper_ledger.identity(cell) for cell in lines})),
        (front, "sets", sets_table()),
        (front, "overview", overview(lines)),
        (front, "given", given_table(lines)),
        (front, "answers", summary(lines)),
        (plus, "overview", overview(lines)),
        (plus, "layers", overview(lines, "layers")),
        (plus, "answers", summary(lines, OF_PLUS)),
        (paper_plan.FOLDER.parent / "README.md", "paper", overview(lines)),
    ]


def confirm(plans: Sequence[CellPlan], path: Path) -> None:
    """Take stale cells over where the cheapest of their row, way and shot comes out the same."""
    lines = paper_ledger.read(path)
    stale: dict[tuple[str, int, int], list[CellPlan]] = {}
    for plan in paper_ledger.missing(lines, plans):
        if plan.identity in lines:
            stale.setdefault(plan.identity[2:5], []).append(plan)
    filler = paper_ledger.Filler(print, RUNS / "episodes")
    for (row, way, shot), mine in stale.items():
        first = min(mine, key=lambda plan: lines[plan.identity].seconds)
        again = filler.compute(first)
        same = again.right == lines[first.identity].right
        said = "the same answers" if same else "other answers: fill them again"
        print(f"{row} {way}-way {shot}-shot: {len(mine)} stale cells, {said}")
        if same:
            renewed = {p.identity: lines[p.identity].model_copy(update={"key": p.prepared.key}) for p in mine}
            paper_ledger.add(renewed, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("action", choices=("run", "table", "missing", "confirm", "prune"))
    parser.add_argument("--set", action="append", choices=SETS)
    parser.add_argument("--row", action="append")
    parser.add_argument("--split", action="append")
    parser.add_argument("--way", action="append", type=int)
    parser.add_argument("--needed", action="store_true", help="only cells that the comparison needs")
    parser.add_argument("--minutes", type=float, default=1e6)
    given = parser.parse_args()
    path = paper_ledger.LEDGER
    every = cells()
    plans = wanted(every, given)
    lines = paper_ledger.read(path)
    if given.action == "run":
        left = paper_ledger.missing(lines, plans)
        done = paper_ledger.fill(left, path, minutes=given.minutes, say=print, episodes=RUNS / "episodes")
        print(f"{done} cells filled, {len(left) - done} left")
    elif given.action == "missing":
        print("\n".join(list_missing(paper_ledger.missing(lines, plans))))
    elif given.action == "confirm":
        confirm(plans, path)
    else:
        there = paper_ledger.current(lines, every)
        print(f"{len(there)} cells are current; {len(lines) - len(there)} are of other code or settings, and left out")
        if given.action == "prune":
            paper_ledger.write(there, path)
        ordered = [there[name] for name in sorted(there)]
        needed = [plan for plan in every if plan.needed]
        make_table(ordered, (len(paper_ledger.missing(lines, needed)), len(needed)), path.parent)
        for page, name, made in blocks(ordered, every):
            put_table(page, name, made.rstrip())


if __name__ == "__main__":
    main()

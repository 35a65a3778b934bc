"""The paper's table on nine sets: fill its ledger cell by cell, make the page from it, list what is missing.

    DMIN_DATA=... python -m reproduce.paper_table run [--set banking77] [--row dmin] [--split fair-01] [--minutes 5]
    python -m reproduce.paper_table table
    python -m reproduce.paper_table missing [--set banking77] [--row dmin]
    DMIN_DATA=... python -m reproduce.paper_table confirm [--row dmin]

`run` fills the cells that are not in the ledger, or that other code or settings filled. `table` writes the page, the claims
and the picture from the ledger alone. `confirm` is for code that changed without changing results: it computes the
cheapest stale cell of each row again, and where every episode has the same number of right answers, the row's stale cells
are taken over under their new keys.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from dmin.evaluation.raw import RawCell
from dmin.files import write_atomic
from reproduce import paper_ledger, paper_plan
from reproduce.paper_claims import claims_page, summary
from reproduce.paper_page import picture, table_page
from reproduce.paper_plan import SETS, CellPlan, cells

RUNS = Path("runs/paper-table")
BEGIN, END = "<!-- answers -->\n", "<!-- end of answers -->"


def wanted(plans: Sequence[CellPlan], given: argparse.Namespace) -> list[CellPlan]:
    """The cells that the options ask for."""
    asked = {0: given.set, 1: given.split, 2: given.row, 3: given.way}
    return [plan for plan in plans if all(not names or plan.identity[place] in names for place, names in asked.items())]


def command_of(plan: CellPlan) -> str:
    """The command that fills a cell."""
    data, split, row, *_ = plan.identity
    return f"python -m reproduce.paper_table run --set {data} --split {split} --row {row}"


def list_missing(plans: Sequence[CellPlan]) -> list[str]:
    """Commands that fill what is missing, with the number of cells of each."""
    commands: dict[str, int] = {}
    for plan in plans:
        commands[command_of(plan)] = commands.get(command_of(plan), 0) + 1
    lines = [f"{command}  # {count} cells" for command, count in commands.items()]
    return [f"{len(plans)} cells are missing", *lines]


def make_table(lines: Sequence[RawCell], missing: int | None, folder: Path) -> None:
    """Write page, claims and picture."""
    write_atomic(folder / "README.md", table_page(lines, missing))
    write_atomic(folder / "claims.md", claims_page(lines))
    picture(lines, folder / "paper-table.png")


def answer_in(page: Path, lines: Sequence[RawCell]) -> None:
    """Renew the answers on the front page, between their two comments."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    write_atomic(page, before + BEGIN + "\n" + summary(lines) + END + rest.partition(END)[2])


def confirm(plans: Sequence[CellPlan], path: Path) -> None:
    """Take stale cells over where the cheapest of their row comes out the same."""
    lines = paper_ledger.read(path)
    stale = [plan for plan in paper_ledger.missing(lines, plans) if plan.identity in lines]
    filler = paper_ledger.Filler(print, RUNS / "episodes")
    for row in dict.fromkeys(plan.row.name for plan in stale):
        mine = [plan for plan in stale if plan.row.name == row]
        first = min(mine, key=lambda plan: lines[plan.identity].seconds)
        again = filler.compute(first)
        same = again.right == lines[first.identity].right
        print(f"{row}: {len(mine)} stale cells, {'the same answers' if same else 'other answers: fill them again'}")
        if same:
            renewed = {p.identity: lines[p.identity].model_copy(update={"key": p.prepared.key}) for p in mine}
            paper_ledger.write({**paper_ledger.read(path), **renewed}, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("action", choices=("run", "table", "missing", "confirm", "prune"))
    parser.add_argument("--set", action="append", choices=SETS)
    parser.add_argument("--row", action="append")
    parser.add_argument("--split", action="append")
    parser.add_argument("--way", action="append", type=int)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--seeds", type=int, default=1, help="trainings per cell, at most 3")
    given = parser.parse_args()
    path = paper_ledger.LEDGER
    every = cells(given.seeds)
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
        there = paper_ledger.current(lines, cells(3))
        print(f"{len(there)} cells are current; {len(lines) - len(there)} are of other code or settings, and left out")
        if given.action == "prune":
            paper_ledger.write(there, path)
        ordered = [there[name] for name in sorted(there)]
        make_table(ordered, len(paper_ledger.missing(lines, every)), path.parent)
        answer_in(paper_plan.FOLDER / "README.md", ordered)


if __name__ == "__main__":
    main()

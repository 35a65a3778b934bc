r"""Would more training change the paper's table? Rows trained for up to 5,000 episodes beside the table's 1,000.

Every row has the table's settings and its first fair split, 5-way 1-shot, the same test episodes, and stops when ten
validations in a row were no better. Besides, Rel. Net and Ind. Net with their own defaults, a random start and a
rate of 0.001 (`--settings plain`). One training; it is here to explain the table and chooses nothing.

    compare() { dmin compare --split fair-01 --way 5 --shot 1 --set pooling=mean --train-episodes 5000 "$@"; }
    for data in banking77 debian; do
      compare --data $data --methods dmin,lwof,relation,induction,hatt,prototypical,matching,dmin-plus \
        --settings reproduce/search/paper/settings.yaml --out runs/more-$data
      compare --data $data --methods relation,induction --settings plain --out runs/plain-$data
    done
    python -m reproduce.more_training runs/{more,plain}-{banking77,debian}/raw.jsonl   # keeps their cells, makes the table
    python -m reproduce.more_training                                                 # the table from the kept cells alone
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from dmin.evaluation.raw import RawCell
from dmin.evaluation.statistics import mean_interval
from dmin.files import write_atomic
from reproduce import paper_ledger
from reproduce.kinds_lines import markdown, points, put_table
from reproduce.memory_cost import SHOT, SPLIT, WAY
from reproduce.paper_page import title_of

FOLDER = Path(__file__).parent / "search"
RAW = FOLDER / "more-training.jsonl"
PLAIN = "--settings plain"


def keep(files: Sequence[Path]) -> None:
    """The cells of some comparisons in one file, those with plain settings named so."""
    cells = []
    for file in files:
        first, *lines = file.read_text(encoding="utf-8").splitlines()
        plain = PLAIN in json.loads(first)["plan"]["command"]
        for cell in map(RawCell.model_validate_json, lines):
            named = cell.row.model_copy(update={"title": "random start"}) if plain else cell.row
            cells.append(cell.model_copy(update={"row": named}))
    write_atomic(RAW, "\n".join(cell.line() for cell in cells) + "\n")


def read() -> list[RawCell]:
    """The cells that were kept."""
    return [RawCell.model_validate_json(line) for line in RAW.read_text(encoding="utf-8").splitlines()]


def table() -> str:
    """One line per row and set: the table's accuracy, that of the longer training, the difference, where it stopped."""
    short = {
        (cell.data, cell.row.name): cell.result().accuracies
        for cell in paper_ledger.read().values()
        if (cell.split, cell.way, cell.shot, cell.seed) == (SPLIT, WAY, SHOT, 0)
    }
    header = ["", "", "1,000 episodes", "up to 5,000", "difference", "stopped after"]
    rows = []
    for cell in read():
        before, after = short[cell.data, cell.row.name], cell.result().accuracies
        difference = mean_interval([b - a for a, b in zip(before, after, strict=True)])
        rows.append([
            cell.data, ", ".join(said for said in (title_of(cell.row.name), cell.row.title) if said),
            f"{100 * sum(before) / len(before):.1f}", f"{100 * cell.result().mean:.1f}",
            f"{points(difference.mean)} ± {100 * difference.half_width:.1f}", f"{cell.trained_episodes:,}",
        ])  # fmt: skip
    return markdown(header, rows)


if __name__ == "__main__":
    if sys.argv[1:]:
        keep([Path(name) for name in sys.argv[1:]])
    put_table(FOLDER / "README.md", "more", table())

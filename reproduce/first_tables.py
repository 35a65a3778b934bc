"""The paper's claims asked of the tables of version 0.1, from their CSV files: first-claims.md.

python -m reproduce.first_tables
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from dmin.files import write_atomic
from reproduce.paper_claims import Setting
from reproduce.paper_questions import ABLATION, ORDERING, PLAIN, Claim

FOLDER = Path(__file__).parent
Means = dict[tuple[str, str, Setting], float]  # set, row, setting -> accuracy
TABLES = ("banking77", "hwu64", "clinc150", "ablation")  # all rows on one split each; DMIN taken apart on banking77's
INTRODUCTION = """# The paper's claims, asked of the tables of version 0.1

Made by `python -m reproduce.first_tables` from [banking77](banking77.md), [hwu64](hwu64.md), [clinc150](clinc150.md) (all
rows, four columns) and [ablation](ablation.md) (banking77, two columns). One split and one seed per set, encoder frozen,
defaults of version 0.1 (DMIN with 4 capsules in both modules; HATT, Rel. Net, Ind. Net, Prototypical and ATAML starved), so
this says what those defaults gave; DMIN-plus reads two layers of the encoder here, the others one. The table on nine sets
takes its place as it fills: [paper-table](paper-table/README.md).

| claim | holds in | mean difference | differences in points, cell by cell |
|---|---:|---:|---|
"""


def read() -> Means:
    """The means of the four tables; the ablation's DMIN is the table's own row of the same split."""
    found: Means = {}
    for table in TABLES:
        with (FOLDER / f"{table}.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                place = (row["data"], row["row"], (int(row["way"]), int(row["shot"])))
                found.setdefault(place, float(row["accuracy"]))
    return found


def line(found: Means, claim: Claim) -> str:
    """One claim: counts, mean and every difference."""
    gained = {
        (data, setting): accuracy - found[data, claim.worse, setting]
        for (data, row, setting), accuracy in found.items()
        if row == claim.better and (data, claim.worse, setting) in found
    }
    shown: dict[str, list[str]] = {}
    for (data, _), gain in gained.items():
        shown.setdefault(data, []).append(f"{100 * gain:+.1f}")
    cells = "; ".join(f"{data} {' '.join(values)}" for data, values in shown.items())
    holds = sum(gain > 0 for gain in gained.values())
    return f"| {claim.about} | {holds} of {len(gained)} | {100 * np.mean(list(gained.values())):+.1f} | {cells} |"


def page() -> str:
    """The claims as Markdown."""
    found = read()
    return INTRODUCTION + "\n".join(line(found, claim) for claim in (*ORDERING, *ABLATION, *PLAIN)) + "\n"


if __name__ == "__main__":
    write_atomic(FOLDER / "first-claims.md", page())

"""The leaderboard page of the default head, from what `python -m reproduce.kinds board` wrote, and two pictures.

    python -m reproduce.leaderboard

Writes leaderboard.md, leaderboard.csv and two pictures here, and the same pictures for the pages on probabilities and
refusal in docs/.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dmin.files import write_atomic
from reproduce.kinds_lines import OUT, Line, lines_of, markdown

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
SETS, SHOTS = ("banking77", "clinc150", "hwu64"), (5, 10)
ROWS = {"nearest": "nearest prototype", "logistic": "logistic regression", "default": "default head"}
UNLABELLED = {"logistic_graph": "logistic regression + graph", "adapted": "default head + `adapt`"}
PUBLISHED = {"banking77": (84.0, 89.8), "clinc150": (92.6, 94.8), "hwu64": (82.5, 87.4)}
INTRODUCTION = """\
# All classes at once

The default head (`FewShotClassifier()`, encoder `bge-small`) on the test texts of the public leaderboards, all classes at
once. Made by `python -m reproduce.kinds board`, then `python -m reproduce.leaderboard`. Accuracy in %. Spread and
calibration never saw the set that they are measured on, and nothing is trained at fit. The baselines have the same
vectors; with names, a class's name is one more row. Best of each part in bold. DMIN-plus, the head of version 0.1, is in
[leaderboard-dmin-plus.md](leaderboard-dmin-plus.md), beside SetFit; other kinds of text are in [KINDS.md](KINDS.md)."""
OF_UNLABELLED = """\
## With the test texts as unlabelled texts

Rows of their own: they saw the test texts, without labels. The best published figures that we know of (not measured here)
have no unlabelled texts, but train an encoder or have a language model write training data."""
OF_PROBABILITIES = """\
## Probabilities

Expected calibration error in % (15 bins), of a softmax over the scores as they are, and calibrated."""


def value(lines: Sequence[Line], name: str, shot: int, named: bool, key: str) -> float:
    """One number of the lines."""
    return next(float(line[key]) for line in lines if (line["set"], line["shot"], line["names"]) == (name, shot, named))


def rows_of(lines: Sequence[Line], titles: dict[str, str], columns: Sequence[tuple[str, int]]) -> list[list[str]]:
    """Rows without names, then rows with names; the best of each column and part in bold."""
    rows = []
    for named in (False, True):
        part = {key: [value(lines, name, shot, named, key) for name, shot in columns] for key in titles}
        best = [max(values) for values in zip(*part.values(), strict=True)]
        for key, title in titles.items():
            cells = [
                f"**{found:.1f}**" if found == top else f"{found:.1f}"
                for found, top in zip(part[key], best, strict=True)
            ]
            rows.append([title + (" + names" if named else ""), *cells])
    return rows


def calibration_table(lines: Sequence[Line]) -> str:
    """Expected calibration error of each column."""
    keys = ("calibration_error_before", "calibration_error")
    rows = [
        [f"{name}, {shot} examples" + named * " + names", *(f"{value(lines, name, shot, named, key):.1f}" for key in keys)]
        for named in (False, True)
        for name in SETS
        for shot in SHOTS
    ]  # fmt: skip
    return markdown(["", "scores as they are", "calibrated"], rows)


def refusal_text(found: Any) -> str:
    """What happened to the out-of-scope texts."""
    apart = found["separation"]
    return (
        f"clinc150, 5 examples per class and names, {apart['in_scope']} test texts and {apart['out_of_scope']} "
        f"out-of-scope texts:\nAUROC {apart['auroc']:.3f}, FPR at 95 % TPR {100 * apart['fpr95']:.1f} %. In-scope accuracy "
        f"{100 * found['accuracy_without_refusal']:.1f} % if nothing is refused,\n{100 * found['accuracy']:.1f} % with "
        f'`reject="auto"`, which refuses {100 * found["refused_out_of_scope"]:.1f} % of the out-of-scope texts and, as '
        f"false rejections,\n{100 * found['refused_in_scope']:.1f} % of the in-scope ones (below a cosine of "
        f"{found['threshold']:.2f}, found from the examples alone)."
    )


def page(lines: Sequence[Line], refusal: str) -> str:
    """The whole page."""
    columns = [(name, shot) for name in SETS for shot in SHOTS]
    header = ["", *(f"{name} {shot}" for name, shot in columns)]
    published = ["best published", *(f"{PUBLISHED[name][SHOTS.index(shot)]:.1f}" for name, shot in columns)]
    parts = [
        INTRODUCTION,
        markdown(header, rows_of(lines, ROWS, columns)),
        "## One example per class\n\nThe first of the five.",
        markdown(["", *SETS], rows_of(lines, ROWS, [(name, 1) for name in SETS])),
        OF_UNLABELLED,
        markdown(header, [*rows_of(lines, UNLABELLED, columns), published]),
        OF_PROBABILITIES,
        calibration_table(lines),
        "![Reliability on banking77, 5 examples, with names](reliability.png)",
        "## Refusal",
        refusal,
        "![Cosines of in-scope and of out-of-scope texts](refusal.png)",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    lines = lines_of("board")
    refusal = refusal_text(json.loads((OUT / "assess-clinc150" / "assessment.json").read_text(encoding="utf-8")))
    write_atomic(HERE / "leaderboard.md", page(lines, refusal))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: f"{part:.2f}" if isinstance(part, float) else part for key, part in line.items()} for line in lines
    )
    write_atomic(HERE / "leaderboard.csv", buffer.getvalue())
    for folder in (HERE, DOCS / "images"):
        shutil.copy(OUT / "assess-banking77" / "reliability.png", folder / "reliability.png")
        shutil.copy(OUT / "assess-clinc150" / "refusal.png", folder / "refusal.png")


if __name__ == "__main__":
    main()

"""The leaderboard page of DMIN-plus from what `reproduce/heads.sh measure` wrote: leaderboard-dmin-plus.md and .csv."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dmin.files import write_atomic

SETS, SHOTS = ("banking77", "clinc150", "hwu64"), (5, 10)
COLUMNS = [(name, shot) for name in SETS for shot in SHOTS]
NAMES = {"no-names": "", "names": " + names"}
# Which model's assessment, and what of it.
ROWS: dict[str, tuple[str, Callable[[Any], float]]] = {
    "nearest prototype": ("plain-", lambda found: found["beside"]["nearest"]),
    "logistic regression": ("plain-", lambda found: found["beside"]["logistic"]),
    "nearest prototype, two layers": ("", lambda found: found["beside"]["nearest"]),
    "logistic regression, two layers": ("", lambda found: found["beside"]["logistic"]),
    "DMIN-plus, sibling head": ("", lambda found: found["accuracy"]),
}
INTRODUCTION = """\
# All classes at once: DMIN-plus

DMIN-plus is the head of version 0.1 (`FewShotClassifier("dmin-plus")`); the default head is in
[leaderboard.md](leaderboard.md). Made by `reproduce/heads.sh train measure` (and `reproduce/setfit_rows.py` for SetFit).
Accuracy in % on the public
leaderboard's test texts, all classes at once, 5 or 10 examples per class, MiniLM frozen. A sibling head never
saw the set that it is measured on, nor any test text, and takes no gradient step at fit. Rows with names are a part of
their own: each class's name counts as one more example (for DMIN-plus as many as it learned). Rows of two layers have
the vectors of DMIN-plus (the last and the middle layer), the rows above them the mean over the last. Best of each part
in bold.
"""


class Results:
    """The assessments of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.setfit: dict[str, dict[str, float]] = self.read("setfit.json") or {}

    def read(self, *parts: str) -> Any:
        """A JSON file, or None."""
        path = self.folder.joinpath(*parts)
        return json.loads(path.read_text()) if path.is_file() else None

    def cell(self, name: str, shot: int, kind: str, model: str = "") -> Any:
        """One assessment."""
        return self.read(f"{model}{name}-{shot}-{kind}", "assessment.json")

    def row(self, title: str, columns: Sequence[tuple[str, int]], kind: str) -> list[float | None]:
        """The accuracies of one row."""
        model, read = ROWS[title]
        return [read(self.cell(name, shot, kind, model)) for name, shot in columns]

    def rows(self) -> list[tuple[str, list[float | None]]]:
        """Rows without names, SetFit among them, then rows with names."""
        found: list[tuple[str, list[float | None]]] = []
        for kind, suffix in NAMES.items():
            found += [(title + suffix, self.row(title, COLUMNS, kind)) for title in ROWS]
            if kind == "no-names":
                peer = [self.setfit.get(f"{name}-{shot}", {}).get("accuracy") for name, shot in COLUMNS]
                found.append(("SetFit, num_iterations=5", peer))
        return found


def table(header: Sequence[str], rows: Sequence[tuple[str, Sequence[float | None]]]) -> list[str]:
    """Percentages as Markdown; the best of each column in bold, rows with names by themselves."""
    lines = ["| | " + " | ".join(header) + " |", "|---|" + "---:|" * len(header)]
    for title, values in rows:
        cells = []
        for column, value in enumerate(values):
            rivals = [row[column] or 0.0 for name, row in rows if ("+ names" in name) == ("+ names" in title)]
            text = "" if value is None else f"{100 * value:.1f}"
            cells.append(f"**{text}**" if value is not None and value == max(rivals) else text)
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return lines


def page(results: Results) -> str:
    """The whole page."""
    rows = results.rows()
    lines = [INTRODUCTION, *table([f"{name} {shot}" for name, shot in COLUMNS], rows)]
    if results.setfit:
        seconds = ", ".join(f"{cell} {found['seconds_to_fit']:.0f} s" for cell, found in results.setfit.items())
        lines += [
            "",
            f"SetFit trains the encoder at fit: {seconds} (beside other jobs). The other rows fit in seconds.",
        ]
    one = [
        (title + suffix, results.row(title, [(name, 1) for name in SETS], kind))
        for kind, suffix in NAMES.items()
        for title in ROWS
    ]
    lines += ["", "## One example per class", "", "The first of the five.", "", *table(SETS, one)]
    lines += ["", "## Probabilities", ""]
    lines += ["Expected calibration error in % (15 bins), with the head's own scale and calibrated.", ""]
    lines += ["| | own scale | calibrated |", "|---|---:|---:|"]
    for kind, suffix in NAMES.items():
        for name, shot in COLUMNS:
            cell = results.cell(name, shot, kind)
            before, after = 100 * cell["calibration_error_before"], 100 * cell["calibration_error"]
            lines.append(f"| {name}, {shot} examples{suffix} | {before:.1f} | {after:.1f} |")
    lines += ["", "![Reliability on banking77, 5 examples, with names](reliability-dmin-plus.png)"]
    lines += ["", "## Refusal", "", refusal(results.read("refusal", "assessment.json"))]
    lines += ["", "![Cosines of in-scope and of out-of-scope texts](refusal-dmin-plus.png)"]
    return "\n".join(lines) + "\n"


def refusal(found: Any) -> str:
    """What happened to the out-of-scope texts."""
    apart = found["separation"]
    return (
        f"clinc150, 5 examples per class, {apart['in_scope']} test texts and {apart['out_of_scope']} out-of-scope texts: "
        f"AUROC {apart['auroc']:.3f}, FPR at 95 % TPR {100 * apart['fpr95']:.1f} %. "
        f"In-scope accuracy {100 * found['accuracy_without_refusal']:.1f} % if nothing is refused, "
        f'{100 * found["accuracy"]:.1f} % with `reject="auto"`, which refuses '
        f"{100 * found['refused_out_of_scope']:.1f} % of the out-of-scope texts and "
        f"{100 * found['refused_in_scope']:.1f} % of "
        f"the in-scope ones (below a cosine of {found['threshold']:.2f}, found from the examples alone)."
    )


def main() -> None:
    results, target = Results(Path(sys.argv[1])), Path(sys.argv[2])
    write_atomic(target / "leaderboard-dmin-plus.md", page(results))
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["row", *(f"{name} {shot}" for name, shot in COLUMNS)])
    writer.writerows([title, *("" if v is None else f"{v:.4f}" for v in row)] for title, row in results.rows())
    write_atomic(target / "leaderboard-dmin-plus.csv", buffer.getvalue())


if __name__ == "__main__":
    main()

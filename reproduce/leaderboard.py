"""The leaderboard table from what `reproduce/heads.sh measure` wrote: leaderboard.md and leaderboard.csv."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

from dmin.files import write_atomic

SETS, SHOTS = ("banking77", "clinc150", "hwu64"), (5, 10)
INTRODUCTION = """\
Made by `reproduce/heads.sh train measure` (and `reproduce/setfit_rows.py` for SetFit). Accuracy in % on the public
leaderboard's test texts, all classes at once, 5 or 10 examples a class, embedded encoder frozen. A sibling head never
saw the set that it is measured on, nor any test text, and takes no gradient step at fit. Rows with names are a part of
their own: each class's name counts as one more example (for DMIN-plus as many as it learned). Best of each part in
bold.""".splitlines()
COLUMNS = [(name, shot) for name in SETS for shot in SHOTS]


def main() -> None:
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    rows: dict[str, list[float | None]] = {}
    errors: list[tuple[str, float, float]] = []
    for names in ("no-names", "names"):
        found = [json.loads((source / f"{n}-{k}-{names}" / "assessment.json").read_text()) for n, k in COLUMNS]
        suffix = " + names" if names == "names" else ""
        rows[f"nearest prototype{suffix}"] = [cell["beside"]["nearest"] for cell in found]
        rows[f"logistic regression{suffix}"] = [cell["beside"]["logistic"] for cell in found]
        rows[f"DMIN-plus, sibling head{suffix}"] = [cell["accuracy"] for cell in found]
        errors += [
            (f"{name}, {shot} examples{suffix}", cell["calibration_error_before"], cell["calibration_error"])
            for (name, shot), cell in zip(COLUMNS, found, strict=True)
        ]
    setfit = _read(source / "setfit.json") or {}
    rows["SetFit, num_iterations=5"] = [setfit.get(f"{n}-{k}", {}).get("accuracy") for n, k in COLUMNS]
    order = [name for name in rows if "names" not in name] + [name for name in rows if "names" in name]
    write_atomic(
        target / "leaderboard.md", _page(rows, order, errors, _read(source / "refusal" / "assessment.json"), setfit)
    )
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["row", *(f"{n} {k}" for n, k in COLUMNS)])
    writer.writerows([name, *("" if v is None else f"{v:.4f}" for v in rows[name])] for name in order)
    write_atomic(target / "leaderboard.csv", buffer.getvalue())


def _page(
    rows: dict[str, list[float | None]],
    order: list[str],
    errors: list[tuple[str, float, float]],
    refusal: Any,
    setfit: Any,
) -> str:
    best = [
        {kind: max(rows[n][c] or 0 for n in order if ("names" in n) == kind) for kind in (True, False)}
        for c in range(len(COLUMNS))
    ]
    lines = [
        "# All classes at once",
        "",
        *INTRODUCTION,
        "",
        "| | " + " | ".join(f"{name} {shot}" for name, shot in COLUMNS) + " |",
        "|---|" + "---:|" * len(COLUMNS),
    ]
    for name in order:
        cells = []
        for column, value in enumerate(rows[name]):
            text = "" if value is None else f"{100 * value:.1f}"
            cells.append(f"**{text}**" if value is not None and value == best[column]["names" in name] else text)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    if setfit:
        seconds = ", ".join(f"{cell} {found['seconds_to_fit']:.0f} s" for cell, found in setfit.items())
        lines += [
            "",
            f"SetFit trains the encoder at fit: {seconds} (beside other jobs). The other rows fit in seconds.",
        ]
    lines += [
        "",
        "## Probabilities",
        "",
        "Expected calibration error in % (15 bins), with the head's own scale and calibrated.",
    ]
    lines += ["", "| | own scale | calibrated |", "|---|---:|---:|"]
    lines += [f"| {name} | {100 * before:.1f} | {100 * after:.1f} |" for name, before, after in errors]
    lines += ["", "![Reliability on banking77, 5 examples, with names](reliability.png)"]
    if refusal:
        lines += ["", "## Refusal", "", _refusal(refusal), "", "![Cosines of both](refusal.png)"]
    return "\n".join(lines) + "\n"


def _refusal(found: Any) -> str:
    apart = found["separation"]
    return (
        f"clinc150, 5 examples a class, {apart['belongs']} test texts and {apart['strangers']} out-of-scope texts: AUROC "
        f"{apart['auroc']:.3f}; {100 * apart['fpr95']:.1f} % of the strangers are accepted when 95 % of what belongs is. "
        f"In-scope accuracy {100 * found['accuracy_without_refusal']:.1f} % if nothing is refused, "
        f'{100 * found["accuracy"]:.1f} % with `reject="auto"`, which refuses {100 * found["refused_of_strangers"]:.1f} % '
        f"of the strangers and {100 * found['refused_of_what_belongs']:.1f} % of what belongs (below a cosine of "
        f"{found['threshold']:.2f}, found from the examples alone)."
    )


def _read(path: Path) -> Any:
    return json.loads(path.read_text()) if path.is_file() else None


if __name__ == "__main__":
    main()

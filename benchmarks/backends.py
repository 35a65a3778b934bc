"""All classes at once on the public sets: what the encoder `minilm` loses with 8-bit weights, default head and names.

The same examples and test texts go through each backend. The default encoder, bge-small, is not among them: it has 8-bit
weights only, and every accuracy that is given for it was measured with these. Needs DMIN_DATA.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.common import Result
from dmin import FewShotClassifier
from dmin.data.labelled import read_corpus

SETS, EXAMPLES = ("banking77", "clinc150", "hwu64"), (5, 10)
BACKENDS = ("torch", "onnx", "onnx-int8")


def main() -> Result:
    """One column for each set and number of examples."""
    data = os.environ.get("DMIN_DATA")
    if not data:
        return Result(["Not run: DMIN_DATA does not name the folder of the public sets."])
    columns = [(name, shots) for name in SETS for shots in EXAMPLES]
    lines = ["| backend | " + " | ".join(f"{name}, {shots}" for name, shots in columns) + " |", "|---" * 7 + "|"]
    figures: dict[str, Any] = {}
    for backend in BACKENDS:
        found = [accuracy(Path(data) / name / "leaderboard", shots, backend) for name, shots in columns]
        figures[backend] = found
        lost = [100 * (one - base) for one, base in zip(found, figures["torch"], strict=True)]
        cells = [f"{100 * one:.1f} ({change:+.2f})" for one, change in zip(found, lost, strict=True)]
        lines.append(f"| {backend} | " + " | ".join(cells) + " |")
    return Result([*lines, "", "Accuracy in %, in brackets the difference from torch in points."], figures)


def accuracy(folder: Path, shots: int, backend: str) -> float:
    """Right answers on the test texts, from so many examples per class."""
    train, test = read_corpus(folder / f"train_{shots}.jsonl"), read_corpus(folder / "test.jsonl")
    classifier = FewShotClassifier(encoder="minilm", backend=backend, device="cpu")
    classifier.fit({label: [train.texts[row] for row in rows] for label, rows in train.by_class.items()})
    return classifier.score(list(test.texts), list(test.labels))


if __name__ == "__main__":
    print("\n".join(main().lines))

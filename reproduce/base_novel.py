"""Base and novel classes answered in one scale: banking77, its 25 base classes of protaugment-01 and the 27 test classes.

    DMIN_DATA=... python reproduce/base_novel.py [OUT]

Each method is trained on the base classes without the leaderboard's test texts; the novel classes then come with five
examples (leaderboard/train_5), and all test texts of both are answered over all 52 classes.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from dmin import FewShotClassifier
from dmin.data import Corpus, load_corpus
from dmin.data.labelled import read_corpus
from dmin.evaluation.assess import assess
from dmin.files import write_atomic
from dmin.methods import method_class
from dmin.training import Trainer, load_config

SPLIT, SHOT = "protaugment-01", 5


def main() -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/base-novel")
    board = Path(os.environ["DMIN_DATA"]) / "banking77" / "leaderboard"
    train, test = read_corpus(board / "train_5.jsonl"), read_corpus(board / "test.jsonl")
    split = load_corpus("banking77").split(SPLIT)
    novel = {label: [train.texts[row] for row in train.by_class[label]] for label in split.test}
    asked = [row for row, label in enumerate(test.labels) if label in {*split.train, *split.test}]
    texts = Corpus("both", tuple(test.texts[row] for row in asked), tuple(test.labels[row] for row in asked))
    lines = []
    for method in ("lwof", "dmin", "dmin-plus"):
        folder = out / method
        if not (folder / "model").is_dir():
            settings = {
                "data": "banking77", "split": SPLIT, "method": method, "way": 5, "shot": SHOT,
                "exclude": str(board / "test.jsonl"), "test_episodes": 0, "stage2.hold_out": True,
            }  # fmt: skip
            Trainer(load_config(overrides=settings), folder, overwrite=True, show=True, warn=warnings.warn).run()
        found = assess(
            FewShotClassifier(folder, use_names=False, keep_base=True).fit(novel), texts, beside=()
        ).as_dict()
        figures = [f"{100 * found[key]:.1f}" for key in ("base_accuracy", "novel_accuracy", "harmonic_mean")]
        lines.append(f"| {method_class(method).title} | {' | '.join(figures)} |")
        print(lines[-1], flush=True)
    table = "| method | base | novel | harmonic mean |\n|---|---:|---:|---:|\n" + "\n".join(lines) + "\n"
    write_atomic(out / "table.md", table)


if __name__ == "__main__":
    main()

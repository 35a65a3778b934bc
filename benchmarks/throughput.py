"""`predict` of a classifier by encoder and backend, one thread, same fresh texts in turns, in processor time.

banking77, all 77 classes with 5 examples each and their names; test texts, each asked once. "cascade" is as it is after a
fit, "cascade, taught" after `adapt` with 3,000 training texts without labels; its speed depends on the texts, because the
first stage answers a part of them only (in brackets). Accuracy on all test texts that were asked, in %. Extrapolated: core
days of a thousand million such texts. Needs DMIN_DATA.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Result, middle, ratio, spread, take_turns, threads
from dmin import FewShotClassifier
from dmin.data.labelled import read_corpus

FORMS: dict[str, dict[str, Any]] = {
    "minilm, torch": {"encoder": "minilm", "backend": "torch", "device": "cpu"},
    "minilm, onnx": {"encoder": "minilm", "backend": "onnx", "device": "cpu"},
    "minilm, onnx-int8": {"encoder": "minilm", "backend": "onnx-int8", "device": "cpu"},
    "bge-small (default)": {},
    "cascade": {"encoder": "cascade"},
    "cascade, taught": {"encoder": "cascade"},
    "static": {"encoder": "static"},
}
BASE, TAUGHT = "bge-small (default)", 3000
TEXTS, REPETITIONS = 256, 5
DAY, MANY = 86_400, 1_000_000_000


def main() -> Result:
    """One table."""
    data = os.environ.get("DMIN_DATA")
    if not data:
        return Result(["Not run: DMIN_DATA does not name the folder of the public sets."])
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        with threads(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _measure(Path(data) / "banking77")
    finally:
        os.environ.pop("OMP_NUM_THREADS")
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before


def _measure(folder: Path) -> Result:
    train, test = (read_corpus(folder / "leaderboard" / f"{part}.jsonl") for part in ("train_5", "test"))
    order = np.random.default_rng(0).permutation(len(test.texts))[: TEXTS * (REPETITIONS + 1)]
    texts, truth = [test.texts[place] for place in order], np.array([test.labels[place] for place in order])
    used = {*train.texts, *test.texts}
    pile = [text for text in dict.fromkeys(read_corpus(folder / "texts.jsonl").texts) if text not in used]
    classifiers = {}
    for name, options in FORMS.items():
        classifiers[name] = FewShotClassifier(**options).fit(train.examples)
        if name.endswith("taught"):
            chosen = np.random.default_rng(1).permutation(len(pile))[:TAUGHT]
            classifiers[name].adapt([pile[place] for place in chosen])
    forms = {
        name: lambda turn, c=classifier: c.predict(texts[turn * TEXTS : (turn + 1) * TEXTS])
        for name, classifier in classifiers.items()
    }
    seconds = take_turns(forms, REPETITIONS, time.process_time)
    lines = ["| encoder | texts per processor second (min to max) | against the default | accuracy | core days |"]
    lines += ["|---|---|---|---|---|"]
    figures: dict[str, Any] = {}
    for name, values in seconds.items():
        answers = classifiers[name].answer(texts)
        right = 100 * float(np.mean(np.array([answer.label for answer in answers]) == truth))
        share = float(np.mean([answer.stage == 1 for answer in answers]))
        rates, faster = [TEXTS / value for value in values], ratio(seconds[BASE], values)
        days = MANY / middle(rates) / DAY
        part = f" ({100 * share:.0f} % by the first stage)" if share else ""
        lines.append(f"| {name}{part} | {spread(rates, digits=0)} | {faster:.2f}x | {right:.1f} | {days:.2g} |")
        figures[name] = {"against_default": faster, "accuracy": right, "first_stage": share, "core_days": days}
    return Result(lines, figures)


if __name__ == "__main__":
    print("\n".join(main().lines))

"""The default classifier on nine kinds of text, all classes at once: `reproduce/KINDS.md`.

    python -m reproduce.kinds encode                 vectors of all texts, kept in $DMIN_CACHE/kinds
    python -m reproduce.kinds draws                  the examples of the cells -> reproduce/kinds-draws.json
    python -m reproduce.kinds fit-constants          spreads and calibration -> src/dmin/model/default_head
    python -m reproduce.kinds cells                  the 54 cells
    python -m reproduce.kinds uneven [SET ...]       some classes have many examples
    python -m reproduce.kinds unlabelled             unlabelled texts, 10 and 40 per class
    python -m reproduce.kinds pile                   100,000 unlabelled texts: time, memory, and what a sample costs
    python -m reproduce.kinds refusal                out-of-scope texts, and probabilities
    python -m reproduce.kinds board                  the public leaderboards
    python -m reproduce.kinds table                  the tables of KINDS.md from runs/kinds

Everything is measured through `FewShotClassifier`. What is learned for a set's rows (the spread, the calibration) never saw
that set; hwu64 and liu54, which share texts, leave together. $DMIN_DATA must be set.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dmin import FewShotClassifier
from dmin.adaptive import Recipe, Spread
from dmin.model.adaptive_head import AdaptiveSetup, default_folder, write_setup
from dmin.model.calibration import Calibration
from reproduce.kinds_constants import Encode, draw_tasks, fit_calibrations, general_spread, spread_without
from reproduce.kinds_data import OPEN, SETS, SHOTS, KindSet, Vectors, data_folder, parts_of, read_lines
from reproduce.kinds_lines import OUT, restart, write

DRAWS = range(10, 20)
# Whose spreads are shipped: the name, the vectors, texts per class (fewer on torch, which takes half an hour as it is).
SPREADS = (
    ("bge-small", "bge-small", 130), ("minilm", "minilm", 30), ("minilm", "minilm-layers", 30), ("static", "static", 130),
)  # fmt: skip


def vectors_of(encoder: str) -> Vectors:
    return Vectors(Path(os.environ.get("DMIN_CACHE", ".cache")) / "kinds", encoder)


def encode(encoder: str) -> None:
    """Vectors of all texts that the other commands need."""
    vectors = vectors_of(encoder)
    for name in (*SETS, "starter"):
        found = KindSet(name)
        board = [text for part in found.boards.values() for text, _ in part]
        vectors([*found.texts, *found.names, *found.fresh[0], *board])
        print(name, flush=True)
    vectors([row["text"] for row in read_lines(data_folder() / "clinc150" / "oos.jsonl")])


def draws() -> None:
    """Write the examples of the cells: for each set and draw, lines of its texts.jsonl, ten per class in sorted order."""
    stored: dict[str, dict[str, list[list[int]]]] = {}
    for name in SETS:
        found, lines = KindSet(name), {}
        for number, row in enumerate(read_lines(data_folder() / name / "texts.jsonl"), 1):
            lines.setdefault(row["text"], number)
        stored[name] = {
            str(draw): [[lines[found.texts[row]] for row in rows] for rows in found.draw(10, draw)] for draw in DRAWS
        }
    target = Path(__file__).with_name("kinds-draws.json")
    target.write_text(json.dumps(stored, separators=(",", ":")) + "\n", encoding="utf-8")


def fit_constants(encoder: str) -> None:
    """Write spreads of all named encoders, and the calibration on the default one, into the package.

    Calibrations without each set, which the rows of that set are measured with, go to runs/kinds/calibrations.json.
    """
    vectors = vectors_of(encoder)
    tasks = {name: draw_tasks(vectors, KindSet(name), Recipe(), spread_without(vectors, name)) for name in OPEN}
    calibrations = fit_calibrations([task for name in OPEN for task in tasks[name]])
    sets = [KindSet(name) for name in OPEN]
    spreads = [(name, general_spread(vectors_of(folder), sets, most)) for name, folder, most in SPREADS]
    per_class = {folder: most for _, folder, most in SPREADS}
    estimated = {"sets": list(OPEN), "texts_per_class": per_class, "command": "python -m reproduce.kinds fit-constants"}
    write_setup(default_folder(), spreads, Recipe(), calibrations, estimated)
    print(calibrations, flush=True)
    without = {
        name: fit_calibrations([task for other in OPEN if other not in parts_of(name) for task in tasks[other]])[0]
        for name in OPEN
    }
    found = {name: without.get(name, calibrations[0]).as_dict() for name in SETS}
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "calibrations.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def calibration_without(name: str) -> Calibration:
    """The calibration from the development tasks of the other sets."""
    found: dict[str, Any] = json.loads((OUT / "calibrations.json").read_text(encoding="utf-8"))
    return Calibration.from_dict(found[name])


# Classifiers that never saw a set


def classifier_for(
    vectors: Encode, spread: Spread | tuple[Spread, ...], calibration: Calibration | None, **options: Any
) -> FewShotClassifier:
    """`FewShotClassifier` on kept vectors, with a spread (one per encoder side by side) and a calibration of our own."""
    classifier = FewShotClassifier("adaptive", encoder=vectors, **options).open()
    spreads = (spread,) if isinstance(spread, Spread) else spread
    setup = AdaptiveSetup(Recipe(), spreads, calibration, calibration, "measured")
    state = classifier._state
    classifier._state = replace(state, model=replace(state.model, setup=setup, calibration=calibration))
    return classifier


def examples_of(found: KindSet, rows: Sequence[Any], *, named: bool) -> dict[Any, list[str]]:
    """Examples by name; without names, by number, which is no word."""
    labels: Sequence[Any] = found.names if named else range(len(found.classes))
    if len(set(labels)) < len(found.classes):
        labels = found.classes
    return {label: [found.texts[row] for row in own] for label, own in zip(labels, rows, strict=True)}


def accuracy(classifier: FewShotClassifier, texts: Sequence[str], truth: Any) -> float:
    return 100 * float((classifier.decision_function(texts).argmax(axis=1) == truth).mean())


def baselines(
    vectors: Vectors, examples: dict[Any, list[str]], names: Sequence[str], asked: Any, truth: Any
) -> dict[str, float]:
    """Nearest prototype and logistic regression on the same vectors; with names, a name is one more row."""
    from sklearn.linear_model import LogisticRegression

    rows, labels = [], []
    for column, texts in enumerate(examples.values()):
        given = [*texts, *([names[column]] if names else [])]
        rows.append(vectors(given))
        labels += [column] * len(given)
    X = np.concatenate(rows)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    Q = asked / np.linalg.norm(asked, axis=1, keepdims=True)
    y = np.array(labels)
    prototypes = np.stack([X[y == column].sum(axis=0) for column in range(len(examples))])
    prototypes /= np.linalg.norm(prototypes, axis=1, keepdims=True)
    model = LogisticRegression(C=10, max_iter=1000).fit(X, y)
    return {
        "nearest": 100 * float(((Q @ prototypes.T).argmax(axis=1) == truth).mean()),
        "logistic": 100 * float((model.predict(Q) == truth).mean()),
    }


def tasks_of(name: str) -> Iterator[tuple[KindSet, int, int, bool, dict[Any, list[str]]]]:
    """The draws of a set: (set, examples per class, draw, names, examples)."""
    found = KindSet(name)
    for shot in SHOTS:
        for number in DRAWS:
            rows = found.draw(shot, number)
            for named in (False, True):
                yield found, shot, number, named, examples_of(found, rows, named=named)


def cells(encoder: str, names: Sequence[str]) -> None:
    """The 54 cells on fresh texts: default, nearest prototype, logistic regression."""
    vectors = vectors_of(encoder)
    restart("cells", names)
    for name in names:
        classifier = classifier_for(vectors, spread_without(vectors, name), None)
        texts, truth = KindSet(name).fresh
        asked = vectors(texts)
        for found, shot, number, named, examples in tasks_of(name):
            classifier.use_names = named
            right = {"default": accuracy(classifier.fit(examples), texts, truth)}
            right |= baselines(vectors, examples, found.names if named else (), asked, truth)
            write("cells", {"set": name, "shot": shot, "draw": number, "names": named, "accuracy": right})
        print(name, flush=True)


def main() -> None:
    from reproduce.kinds_more import board, refusal, uneven
    from reproduce.kinds_tables import write_tables
    from reproduce.kinds_unlabelled import pile, unlabelled

    of_sets: dict[str, Callable[[str, Sequence[str]], None]] = {
        "cells": cells, "uneven": uneven, "unlabelled": unlabelled, "refusal": refusal,
    }  # fmt: skip
    of_encoder = {"encode": encode, "fit-constants": fit_constants, "board": board, "pile": pile}
    plain = {"draws": draws, "table": write_tables}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=[*of_sets, *of_encoder, *plain])
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--encoder", default="bge-small")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.command in plain:
        plain[given.command]()
    elif given.command in of_encoder:
        of_encoder[given.command](given.encoder)
    else:
        of_sets[given.command](given.encoder, given.sets or SETS)


if __name__ == "__main__":
    main()

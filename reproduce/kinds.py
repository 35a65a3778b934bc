"""The default classifier on nine kinds of text, all classes at once: `reproduce/KINDS.md`.

    python -m reproduce.kinds encode                 vectors of all texts, kept in $DMIN_CACHE/kinds
    python -m reproduce.kinds draws                  the examples of the cells -> reproduce/kinds-draws.json
    python -m reproduce.kinds fit-constants          spreads and calibration -> src/dmin/model/default_head
    python -m reproduce.kinds cells                  the 54 cells -> runs/kinds/cells.jsonl
    python -m reproduce.kinds uneven                 a few classes with many examples
    python -m reproduce.kinds unlabelled             unlabelled texts, 10 and 40 per class
    python -m reproduce.kinds refusal                out-of-scope texts, and probabilities
    python -m reproduce.kinds board                  the public leaderboards
    python -m reproduce.kinds table                  the cells as a Markdown table

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
from reproduce.kinds_constants import draw_tasks, fit_calibrations, general_spread, spread_without
from reproduce.kinds_data import OPEN, SETS, SHOTS, KindSet, Vectors, data_folder, read_lines

OUT = Path("runs/kinds")
DRAWS = range(10, 20)
SPREADS = (("bge-small", "bge-small"), ("minilm", "minilm"), ("minilm", "minilm-layers"), ("static", "static"))


def vectors_of(encoder: str) -> Vectors:
    return Vectors(Path(os.environ.get("DMIN_CACHE", ".cache")) / "kinds", encoder)


def encode(encoder: str) -> None:
    """Vectors of all texts that the other commands need."""
    vectors = vectors_of(encoder)
    for name in SETS:
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


def calibrated(vectors: Vectors, names: Sequence[str], cache: dict[str, Any]) -> tuple[Calibration, Calibration]:
    """Calibrations from the development tasks of some sets, each scored with a spread that never saw it."""
    for name in names:
        if name not in cache:
            cache[name] = draw_tasks(vectors, KindSet(name), Recipe(), spread_without(vectors, name))
    return fit_calibrations([task for name in names for task in cache[name]])


def fit_constants(encoder: str) -> None:
    """Write spreads of all named encoders, and the calibration on the default one, into the package."""
    sets = [KindSet(name) for name in OPEN]
    spreads = [(name, general_spread(vectors_of(folder), sets)) for name, folder in SPREADS]
    calibrations = calibrated(vectors_of(encoder), OPEN, {})
    estimated = {"sets": list(OPEN), "texts_per_class": 130, "command": "python -m reproduce.kinds fit-constants"}
    write_setup(default_folder(), spreads, Recipe(), calibrations, estimated)
    print(calibrations)


# Classifiers that never saw a set


def classifier_for(
    vectors: Vectors, spread: Spread, calibration: Calibration | None, **options: Any
) -> FewShotClassifier:
    """`FewShotClassifier` on kept vectors, with a spread and a calibration of our own."""
    classifier = FewShotClassifier("adaptive", encoder=vectors, **options).open()
    setup = AdaptiveSetup(Recipe(), (spread,), calibration, calibration, "measured")
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


def write(name: str, line: dict[str, Any]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def table() -> None:
    """The cells as Markdown, with intervals over the draws and paired tests."""
    from scipy import stats

    groups: dict[tuple[str, int, bool], dict[str, list[float]]] = {}
    for line in read_lines(OUT / "cells.jsonl"):
        group = groups.setdefault((line["set"], line["shot"], line["names"]), {})
        for method, value in line["accuracy"].items():
            group.setdefault(method, []).append(value)
    print(
        "| set | per class | names | nearest prototype | logistic regression | default | difference to the better | p | |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    differences, failed = [], 0
    for (name, shot, named), group in sorted(groups.items(), key=lambda item: (SETS.index(item[0][0]), item[0][1:])):
        means = {method: float(np.mean(values)) for method, values in group.items()}
        better = max(("nearest", "logistic"), key=lambda method: means[method])
        change = np.subtract(group["default"], group[better])
        p = float(stats.ttest_1samp(change, 0).pvalue) if change.std() else 1.0
        half = float(stats.t.ppf(0.975, len(change) - 1) * np.std(group["default"], ddof=1) / len(change) ** 0.5)
        mark = "" if change.mean() >= -0.3 else "n.s." if p >= 0.05 else "fails"
        differences.append(change.mean())
        failed += mark == "fails"
        print(f"| {name} | {shot} | {'yes' if named else 'no'} | {means['nearest']:.2f} | {means['logistic']:.2f} | "
              f"{means['default']:.2f} ± {half:.2f} | {change.mean():+.2f} | {p:.3f} | {mark} |")  # fmt: skip
    print(f"\n{len(groups)} cells, mean difference {np.mean(differences):+.2f}, smallest {min(differences):+.2f}, "
          f"below -0.3: {sum(value < -0.3 for value in differences)}, failing: {failed}")  # fmt: skip


def main() -> None:
    from reproduce.kinds_more import board, refusal, uneven, unlabelled

    commands: dict[str, Callable[..., None]] = {
        "encode": encode, "draws": draws, "fit-constants": fit_constants, "cells": cells, "uneven": uneven,
        "unlabelled": unlabelled, "refusal": refusal, "board": board, "table": table,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=commands)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--encoder", default="bge-small")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.command in ("table", "draws"):
        commands[given.command]()
    elif given.command in ("encode", "fit-constants", "board"):
        commands[given.command](given.encoder)
    else:
        commands[given.command](given.encoder, given.sets or SETS)


if __name__ == "__main__":
    main()

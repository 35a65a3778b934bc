"""The default classifier on nine kinds of text, all classes at once: `reproduce/KINDS.md`.

    python reproduce/kinds.py encode                 vectors of all texts, kept in $DMIN_CACHE/kinds
    python reproduce/kinds.py fit-constants          spreads and calibration -> src/dmin/model/default_head
    python reproduce/kinds.py cells                  the 54 cells -> runs/kinds/cells.jsonl
    python reproduce/kinds.py uneven                 a few classes with many examples
    python reproduce/kinds.py unlabelled             unlabelled texts, 10 and 40 per class
    python reproduce/kinds.py refusal                out-of-scope texts, and probabilities
    python reproduce/kinds.py board                  the public leaderboards
    python reproduce/kinds.py table                  the cells as a Markdown table

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
from reproduce.kinds_constants import (
    calibration_error,
    draw_tasks,
    fit_calibrations,
    general_spread,
    spread_without,
)
from reproduce.kinds_data import OPEN, SETS, SHOTS, KindSet, Vectors, data_folder, generator, parts_of, read_lines

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
    estimated = {"sets": list(OPEN), "texts_per_class": 130, "command": "python reproduce/kinds.py fit-constants"}
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


def uneven(encoder: str, names: Sequence[str]) -> None:
    """Some classes raised to 16 or 70 examples: the change of the others' accuracy."""
    vectors = vectors_of(encoder)
    for name in names:
        found, totals = KindSet(name), {}
        classifier = classifier_for(vectors, spread_without(vectors, name), None)
        texts = [found.texts[row] for rows in found.test for row in rows]
        truth = np.concatenate([found.labels[rows] for rows in found.test])
        for part in (10 / len(found.classes), 0.5):
            for number in range(4):
                order = generator(name, "rich", number).permutation(len(found.classes))
                rich = set(order[: round(part * len(found.classes))].tolist())
                others = np.array([label not in rich for label in truth])
                for few in (2, 5):
                    for named in (False, True):
                        classifier.use_names = named
                        for many in (few, 16, 70):
                            rows = [
                                generator(name, "draw", number, label).permutation(pool)[
                                    : many if column in rich else few
                                ]
                                for column, (label, pool) in enumerate(zip(found.classes, found.pool, strict=True))
                            ]
                            classifier.fit(examples_of(found, rows, named=named))
                            right = classifier.decision_function(texts).argmax(axis=1) == truth
                            key = (round(part, 2), few, named, many)
                            totals.setdefault(key, []).append((right[others].mean(), right[~others].mean()))
        for (part, few, named, many), values in totals.items():
            if many > few:
                change = 100 * (np.mean(values, axis=0) - np.mean(totals[part, few, named, few], axis=0))
                print(
                    f"| {name} | {part:.0%} | {few} | {'yes' if named else 'no'} | {many} | {change[0]:+.2f} "
                    f"| {change[1]:+.1f} |"
                )


def unlabelled(encoder: str, names: Sequence[str]) -> None:
    """Change of accuracy by unlabelled texts: of the pile itself, and of new texts."""
    vectors = vectors_of(encoder)
    for name in names:
        found, totals = KindSet(name), {}
        classifier = classifier_for(vectors, spread_without(vectors, name), None)
        texts, truth = found.fresh
        for kind in ("even", "uneven", "unknown"):
            for shot in SHOTS:
                for number in (10, 11):
                    rows = found.draw(shot, number)
                    known = np.arange(len(found.classes))
                    if kind == "unknown":  # 30 % of the pile belongs to no class
                        known = np.sort(
                            generator(name, "unknown", number).permutation(known)[: round(0.7 * len(known))]
                        )
                    place = {int(column): at for at, column in enumerate(known)}
                    keep = np.array([int(label) in place for label in truth])
                    asked = [text for text, yes in zip(texts, keep, strict=True) if yes]
                    labels = np.array([place[int(label)] for label in truth[keep]])
                    for named in (False, True):
                        classifier.use_names = named
                        examples = list(examples_of(found, rows, named=named).items())
                        classifier.fit(dict(examples[column] for column in known))
                        for per in (10, 40):
                            pile, owners = _pile(found, rows, per, kind, number)
                            mine = [at for at, owner in enumerate(owners) if owner in place]
                            own = ([pile[at] for at in mine], np.array([place[owners[at]] for at in mine]))
                            before = [accuracy(classifier, *own), accuracy(classifier, asked, labels)]
                            classifier.adapt(pile)
                            after = [accuracy(classifier, *own), accuracy(classifier, asked, labels)]
                            classifier.refit()
                            totals.setdefault((kind, per), []).append(np.subtract(after, before))
        for (kind, per), values in totals.items():
            change = np.mean(values, axis=0)
            print(
                f"| {name} | {kind} | {per} | {change[0]:+.2f} | {change[1]:+.2f} | {np.min(values):+.1f} |", flush=True
            )


def _pile(found: KindSet, rows: Any, per: int, kind: str, number: int) -> tuple[list[str], list[int]]:
    texts, owners = [], []
    for column, pool in enumerate(found.pool):
        rest = generator(found.name, "unlabelled", number, column).permutation(np.setdiff1d(pool, rows[column]))
        size = max(1, (per, per // 4, per // 16)[column % 3]) if kind == "uneven" else per
        texts += [found.texts[row] for row in rest[:size]]
        owners += [column] * len(rest[:size])
    return texts, owners


def board(encoder: str) -> None:
    """The public leaderboards, full test sets; with the test texts as unlabelled ones, and without."""
    vectors = vectors_of(encoder)
    for name in ("banking77", "clinc150", "hwu64"):
        found = KindSet(name)
        classifier = classifier_for(vectors, spread_without(vectors, name), None)
        texts, truth = zip(*found.boards["test"], strict=True)
        for shot in (5, 10):
            for named in (False, True):
                classifier.use_names = named
                groups: dict[Any, list[str]] = {label: [] for label in examples_of(found, found.test, named=named)}
                for text, column in found.boards[f"train_{shot}"]:
                    groups[list(groups)[column]].append(text)
                plain = accuracy(classifier.fit(groups), texts, np.array(truth))
                adapted = accuracy(classifier.adapt(texts), texts, np.array(truth))
                print(f"| {name} | {shot} | {'yes' if named else 'no'} | {plain:.1f} | {adapted:.1f} |", flush=True)


def refusal(encoder: str, names: Sequence[str]) -> None:
    """reject="auto" and probabilities, calibrated without the set: half of the classes are unknown; clinc150 also oos."""
    from dmin.evaluation.quality import separation

    vectors, cache = vectors_of(encoder), {}
    calibrated(vectors, OPEN, cache)
    for name in names:
        found = KindSet(name)
        calibration, _ = calibrated(vectors, [other for other in OPEN if other not in parts_of(name)], cache)
        spread = spread_without(vectors, name)
        for shot in SHOTS:
            for named in (False, True):
                rows: dict[str, list[Any]] = {}
                for number in (10, 11, 12):
                    order = generator(name, "known", number).permutation(len(found.classes))
                    known = np.sort(order[: len(order) // 2])
                    _refusals(found, vectors, spread, calibration, shot, number, known, named, rows, None)
                    if name == "clinc150":
                        oos = [row["text"] for row in read_lines(data_folder() / name / "oos.jsonl")][:1000]
                        _refusals(found, vectors, spread, calibration, shot, number, np.arange(150), named, rows, oos)
                for kind, values in rows.items():
                    mean = np.mean(values, axis=0)
                    print(
                        f"| {name} | {kind} | {shot} | {'yes' if named else 'no'} | "
                        + " | ".join(f"{100 * value:.1f}" for value in mean)
                        + " |",
                        flush=True,
                    )
    del separation


def _refusals(found: KindSet, vectors: Vectors, spread: Spread, calibration: Calibration, shot: int, number: int,
              known: Any, named: bool, rows: dict[str, list[Any]], oos: list[str] | None) -> None:  # fmt: skip
    from sklearn.metrics import roc_auc_score

    examples = list(examples_of(found, found.draw(shot, number), named=named).items())
    classifier = classifier_for(vectors, spread, calibration, use_names=named, reject="auto", unknown_label="?")
    classifier.fit(dict(examples[column] for column in known))
    place = {int(column): at for at, column in enumerate(known)}
    texts, truth = found.fresh
    inside = [text for text, label in zip(texts, truth, strict=True) if int(label) in place]
    outside = oos or [text for text, label in zip(texts, truth, strict=True) if int(label) not in place]
    right = np.array([place[int(label)] for label in truth if int(label) in place])
    answers, others = classifier.answer(inside), classifier.answer(outside)
    scores = [found.score for found in answers], [found.score for found in others]
    area = roc_auc_score([1] * len(inside) + [0] * len(outside), [*scores[0], *scores[1]])
    false_positives = float((np.array(scores[1]) >= np.quantile(scores[0], 0.05)).mean())
    probability = np.array([answer.probability for answer in answers])
    correct = classifier.decision_function(inside).argmax(axis=1) == right
    rows.setdefault("out-of-scope texts" if oos else "half of the classes", []).append(
        [area, false_positives, np.mean([a.refused for a in answers]), np.mean([a.refused for a in others]),
         calibration_error(probability, correct)]
    )  # fmt: skip


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
    commands: dict[str, Callable[..., None]] = {
        "encode": encode, "fit-constants": fit_constants, "cells": cells, "uneven": uneven, "unlabelled": unlabelled,
        "refusal": refusal, "board": board, "table": table,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=commands)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--encoder", default="bge-small")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.command == "table":
        table()
    elif given.command in ("encode", "fit-constants", "board"):
        commands[given.command](given.encoder)
    else:
        commands[given.command](given.encoder, given.sets or SETS)


if __name__ == "__main__":
    main()

"""Beside the 54 cells of `kinds.py`: uneven classes, unlabelled texts, refusal and probabilities, the leaderboards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dmin.adaptive import Spread
from dmin.model.calibration import Calibration
from reproduce.kinds import accuracy, calibrated, classifier_for, examples_of, vectors_of
from reproduce.kinds_constants import calibration_error, spread_without
from reproduce.kinds_data import OPEN, SHOTS, KindSet, Vectors, data_folder, generator, parts_of, read_lines


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
                    f"| {name} | {part:.0%} | {few} | {'yes' if named else 'no'} | {many} | {change[0]:+.2f} | "
                    f"{change[1]:+.1f} |"
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

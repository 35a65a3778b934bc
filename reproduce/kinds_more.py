"""Beside the 54 cells of `kinds.py`: uneven classes, refusal and probabilities, the public leaderboards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dmin import FewShotClassifier
from dmin.data import Corpus
from dmin.evaluation.assess import assess
from reproduce.kinds import (
    accuracy,
    baselines,
    calibration_without,
    classifier_for,
    examples_of,
    vectors_of,
)
from reproduce.kinds_constants import calibration_error, spread_without
from reproduce.kinds_data import SHOTS, KindSet, Vectors, data_folder, generator, read_lines
from reproduce.kinds_lines import OUT, restart, write
from reproduce.kinds_unlabelled import logistic_with_graph, rows_of

BOARDS = ("banking77", "clinc150", "hwu64")


# Uneven classes


def uneven(encoder: str, names: Sequence[str]) -> None:
    """Some classes raised to 16 or 70 examples: the change of the others' accuracy, and of theirs."""
    vectors = vectors_of(encoder)
    restart("uneven", names)
    for name in names:
        found = KindSet(name)
        classifier = classifier_for(vectors, spread_without(vectors, name), None)
        for part in (10 / len(found.classes), 0.5):
            for number in range(4):
                order = generator(name, "rich", number).permutation(len(found.classes))
                rich = set(order[: round(part * len(found.classes))].tolist())
                for few in (2, 5):
                    for named in (False, True):
                        classifier.use_names = named
                        key = {"set": name, "part": round(part, 2), "draw": number, "few": few, "names": named}
                        _raise(classifier, found, rich, few, key)
        print(name, flush=True)


def _raise(classifier: FewShotClassifier, found: KindSet, rich: set[int], few: int, key: dict[str, Any]) -> None:
    texts = [found.texts[row] for rows in found.test for row in rows]
    truth = np.concatenate([found.labels[rows] for rows in found.test])
    others = np.array([label not in rich for label in truth])
    before: Any = None
    for many in (few, 16, 70):
        if many > max(len(pool) for pool in found.pool):  # starter has 16
            continue
        rows = [
            generator(found.name, "draw", key["draw"], label).permutation(pool)[: many if column in rich else few]
            for column, (label, pool) in enumerate(zip(found.classes, found.pool, strict=True))
        ]
        classifier.fit(examples_of(found, rows, named=key["names"]))
        right = classifier.decision_function(texts).argmax(axis=1) == truth
        after = 100 * np.array([right[others].mean(), right[~others].mean()])
        if before is None:
            before = after
        else:
            write("uneven", {**key, "many": many, "change": (after - before).tolist()})


# Refusal and probabilities


def refusal(encoder: str, names: Sequence[str]) -> None:
    """reject="auto" and probabilities, calibrated without the set: half of the classes are unknown; clinc150 also oos."""
    vectors = vectors_of(encoder)
    restart("refusal", names)
    for name in names:
        found, spread = KindSet(name), spread_without(vectors, name)
        classifier = classifier_for(vectors, spread, calibration_without(name), reject="auto", unknown_label="?")
        for shot in SHOTS:
            for named in (False, True):
                classifier.use_names = named
                for number in (10, 11, 12):
                    order = generator(name, "known", number).permutation(len(found.classes))
                    known = np.sort(order[: len(order) // 2])
                    key = {"set": name, "unknown": "half of the classes", "shot": shot, "names": named, "draw": number}
                    write("refusal", key | {"values": _refusals(classifier, found, key, known, None)})
                    if name == "clinc150":
                        oos = [row["text"] for row in read_lines(data_folder() / name / "oos.jsonl")][:1000]
                        key["unknown"] = "out-of-scope texts"
                        write("refusal", key | {"values": _refusals(classifier, found, key, np.arange(150), oos)})
        print(name, flush=True)


def _refusals(
    classifier: FewShotClassifier, found: KindSet, key: dict[str, Any], known: Any, oos: list[str] | None
) -> list[float]:
    """AUROC, FPR at 95 % TPR, false rejections, refused unknown texts, expected calibration error."""
    from sklearn.metrics import roc_auc_score

    examples = list(examples_of(found, found.draw(key["shot"], key["draw"]), named=key["names"]).items())
    classifier.fit(dict(examples[column] for column in known))
    place = {int(column): at for at, column in enumerate(known)}
    texts, truth = found.fresh
    inside = [text for text, label in zip(texts, truth, strict=True) if int(label) in place]
    outside = oos or [text for text, label in zip(texts, truth, strict=True) if int(label) not in place]
    right = np.array([place[int(label)] for label in truth if int(label) in place])
    answers, others = classifier.answer(inside), classifier.answer(outside)
    scores = [answer.score for answer in answers], [answer.score for answer in others]
    area = roc_auc_score([1] * len(inside) + [0] * len(outside), [*scores[0], *scores[1]])
    false_positives = float((np.array(scores[1]) >= np.quantile(scores[0], 0.05)).mean())
    probability = np.array([answer.probability for answer in answers])
    correct = classifier.decision_function(inside).argmax(axis=1) == right
    return [
        float(area), false_positives, float(np.mean([answer.refused for answer in answers])),
        float(np.mean([answer.refused for answer in others])), calibration_error(probability, correct),
    ]  # fmt: skip


# Leaderboards


def board(encoder: str) -> None:
    """The public leaderboards, full test sets; with the test texts as unlabelled ones, and without."""
    vectors = vectors_of(encoder)
    restart("board", BOARDS)
    for name in BOARDS:
        found = KindSet(name)
        classifier = classifier_for(vectors, spread_without(vectors, name), calibration_without(name))
        texts, truth = zip(*found.boards["test"], strict=True)
        for shot in (1, 5, 10):
            for named in (False, True):
                classifier.use_names = named
                groups = board_examples(found, shot, named)
                line = _board_line(classifier, vectors, found, groups, texts, np.array(truth))
                write("board", {"set": name, "shot": shot, "names": named} | line)
        print(name, flush=True)
    _board_pictures(vectors)


def board_examples(found: KindSet, shot: int, named: bool) -> dict[Any, list[str]]:
    """The leaderboard's examples by class; one example is the first of the five."""
    groups: dict[Any, list[str]] = {label: [] for label in examples_of(found, found.test, named=named)}
    for text, column in found.boards[f"train_{max(5, shot)}"]:
        groups[list(groups)[column]].append(text)
    return {label: texts[:shot] for label, texts in groups.items()}


def _board_line(
    classifier: FewShotClassifier, vectors: Vectors, found: KindSet, groups: dict[Any, list[str]], texts: Sequence[str],
    truth: Any,
) -> dict[str, float]:  # fmt: skip
    named = bool(classifier.use_names)
    asked = vectors(texts)
    line = baselines(vectors, groups, found.names if named else (), asked, truth)
    line["default"] = accuracy(classifier.fit(groups), texts, truth)
    probability = classifier.predict_proba(texts)
    right = probability.argmax(axis=1) == truth
    line["calibration_error"] = 100 * calibration_error(probability.max(axis=1), right)
    exponent = np.exp(classifier.decision_function(texts))
    plain = (exponent / exponent.sum(axis=1, keepdims=True)).max(axis=1)
    line["calibration_error_before"] = 100 * calibration_error(plain, right)
    line["adapted"] = accuracy(classifier.adapt(texts), texts, truth)
    graph = logistic_with_graph(*rows_of(vectors, groups, found.names if named else ()), asked, asked)
    line["logistic_graph"] = 100 * float((graph.of_pile == truth).mean())
    return line


def _board_pictures(vectors: Vectors) -> None:
    """Reliability on banking77 and refusal on clinc150, five examples with names, as `dmin evaluate` makes them."""
    for name, rejecting in (("banking77", None), ("clinc150", "auto")):
        found = KindSet(name)
        classifier = classifier_for(vectors, spread_without(vectors, name), calibration_without(name), reject=rejecting)
        classifier.use_names = True
        classifier.fit(board_examples(found, 5, True))
        texts, truth = zip(*found.boards["test"], strict=True)
        labels = list(examples_of(found, found.test, named=True))
        corpus = Corpus(name, tuple(texts), tuple(labels[column] for column in truth))
        outside = [row["text"] for row in read_lines(data_folder() / name / "oos.jsonl")] if rejecting else []
        made = assess(classifier, corpus, outside, beside=())
        replace(made, answers=(), faults=()).write(OUT / f"assess-{name}")

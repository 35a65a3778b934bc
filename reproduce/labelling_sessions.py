"""The `records` and `sessions` steps of `labelling.py`: simulated labelling sessions, and the product's own loop."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from labelling_strategies import State, fitted
from labelling_worlds import SEEDS, World, Worlds, append, read_lines

from dmin import FewShotClassifier
from dmin.labelling import Session
from dmin.labelling.selection import choose_rows, neighbour_agreement, uncertainty
from dmin.labelling.session import NEIGHBOURS_AMONG

MOST_LABELS = 240  # of a record
MOST_ANSWERS, SESSION_SEEDS = 60, range(3)  # of a session


def run_records(worlds: Worlds, out: Path, step: int = 10) -> None:
    """The record of a session in batches of ten: each prediction before its answer, and the true accuracy on the rest."""
    path = out / "records.jsonl"
    done = {(row["set"], row["seed"]) for row in read_lines(path)}
    for name in worlds.names:
        for seed in [seed for seed in list(SEEDS)[:5] if (name, seed) not in done]:
            append(path, {"set": name, "seed": seed, **record(worlds.open(name), seed, step)})
        print(name, "recorded", flush=True)


def record(world: World, seed: int, step: int) -> dict[str, Any]:
    """The classes bought in order, outcomes (labels, right), and truths: labels, accuracy and agreement on the rest."""
    vectors, labels, _, _ = world.draw(seed)
    state, outcomes, truth, model = State(vectors, labels, len(world.classes), seed), [], [], None
    while len(state.bought) < min(4 * len(world.classes), len(vectors) // 2, MOST_LABELS):
        known, names = vectors[state.bought], list(labels[state.bought])
        weights = uncertainty(vectors, known, names) if state.bought else None
        rows = list(choose_rows(vectors, step, known=known, weights=weights, taken=state.bought).rows)
        if not rows:
            break
        if model is not None:
            right = model.predict(vectors[rows]) == labels[rows]
            outcomes += [(len(state.bought), bool(good)) for good in right]
        state.bought += rows
        if state.known_classes > 1:
            known, names, rest = vectors[state.bought], list(labels[state.bought]), state.free
            model = fitted(known, labels[state.bought])
            accuracy = float((model.predict(vectors[rest]) == labels[rest]).mean())
            sample = np.random.default_rng(0).permutation(rest)[:NEIGHBOURS_AMONG]
            truth.append(
                (len(state.bought), accuracy, neighbour_agreement(vectors[sample], model.predict(vectors[sample])))
            )
    bought = [int(label) for label in labels[state.bought]]
    return {"classes": len(world.classes), "bought": bought, "outcomes": outcomes, "truth": truth}


def run_sessions(worlds: Worlds, out: Path) -> None:
    """Sessions with and without learning from unlabelled texts; the questions are the same."""
    path = out / "sessions.jsonl"
    done = {(row["set"], row["seed"], row["unlabelled"]) for row in read_lines(path)}
    for seed, name in [(seed, name) for seed in SESSION_SEEDS for name in worlds.names]:
        for learns in (True, False):
            if (name, seed, learns) not in done:
                row = {"set": name, "seed": seed, "unlabelled": learns}
                append(path, {**row, **session_record(worlds.open(name), seed, learns)})
        print(name, seed, "sessions", flush=True)


def session_record(world: World, seed: int, learns: bool) -> dict[str, Any]:
    """Right or wrong of each prediction before its answer, test accuracy at the end, and every ten answers the
    true accuracy on the rest beside the signals that an estimate rests on."""
    rows, test = world.rows(seed), np.concatenate(world.test)
    texts = [world.texts[row] for row in rows]
    truth = {world.texts[row]: world.classes[world.labels[row]] for row in rows}
    right: list[bool] = []
    truths: list[tuple[Any, ...]] = []
    spent = 0.0
    with (
        tempfile.TemporaryDirectory() as folder,
        Session(texts, Path(folder) / "s", vectors=world.vectors[rows], seed=seed, use_unlabelled=learns) as session,
    ):
        while len(session.answers) < MOST_ANSWERS:
            start = time.perf_counter()
            question = session.next()
            if question is None:
                break
            if question.predicted is not None:
                right.append(question.predicted == truth[question.text])
            estimate = session.answer(truth[question.text])  # every ten answers
            spent += time.perf_counter() - start
            signals = session.signals if estimate is not None else None
            if signals is not None:
                done = {entry["text"] for entry in session.answers}
                rest = [row for row in rows if world.texts[row] not in done]
                truths.append(
                    (accuracy_on(world, session.classifier, rest), signals.agreement, signals.counts, len(right))
                )
        start = time.perf_counter()
        saved = session.save(Path(folder) / "classifier")
        saving = time.perf_counter() - start
    found = {"right": right, "truths": truths, "accuracy": accuracy_on(world, saved, test)}
    return {**found, "seconds": spent, "saving": saving, "texts": len(texts)}


def accuracy_on(world: World, classifier: FewShotClassifier, rows: Any) -> float:
    """The share of rows that a classifier answers rightly, by their vectors."""
    state = classifier.state_
    scores = state.scores(torch.from_numpy(world.vectors[np.asarray(rows)]))  # [n, classes]
    answers = [state.labels[place] for place in scores.argmax(axis=1)]
    return float(
        np.mean([answer == world.classes[world.labels[row]] for answer, row in zip(answers, rows, strict=True)])
    )

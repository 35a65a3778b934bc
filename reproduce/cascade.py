"""encoder="cascade" on nine kinds of text: share of the first stage, accuracy lost, processor time saved.

    python -m reproduce.cascade [SET ...] > reproduce/cascade.md

Leaderboard sets: their examples and test texts. Other sets: two draws of `kinds_data.py` and at most 1,500 fresh texts.
Unlabelled texts are texts of the pool and, where a set has a leaderboard, fresh ones; never examples or test texts.
When the first stage answers is found by `FewShotClassifier` itself, without any test text.
"lost" is the accuracy of the default classifier minus that of the cascade, in points, both with the same unlabelled texts.
"faster" is processor time of the second stage for every text, divided by that of the cascade, on one thread.
$DMIN_DATA must be set; vectors are kept in $DMIN_CACHE/kinds.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmin import FewShotClassifier
from dmin.encoder import open_encoder
from reproduce.kinds import vectors_of
from reproduce.kinds_data import SETS, KindSet, Vectors, data_folder, generator, read_lines

SHOTS, DRAWS, MOST, TIMED = (5, 10), (10, 11), 1500, 64
POOL = range(10, 13)  # draws whose texts are the unlabelled ones


class Kept:
    """The default encoder, with vectors that are kept between runs."""

    def __init__(self, vectors: Vectors) -> None:
        self.encoder, self.vectors = open_encoder(), vectors

    def encode(self, texts: Sequence[str], **_: Any) -> Any:
        return self.vectors(texts).astype(np.float32)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)


@dataclass(frozen=True)
class Task:
    """Examples, unlabelled texts, and test texts with their labels."""

    name: str
    shot: int
    examples: dict[str, list[str]]
    unlabelled: list[str]
    texts: list[str]
    truth: list[str]


def tasks(name: str) -> Iterator[Task]:
    """The tasks of a set: of its leaderboard, or two draws."""
    found = KindSet(name)
    fresh, labels = found.fresh
    chosen = generator(name, "cascade").permutation(len(fresh))[:MOST]
    pool = [found.texts[row] for draw in POOL for rows in found.draw(10, draw) for row in rows]
    for shot in SHOTS:
        if found.boards:
            examples: dict[str, list[str]] = {label: [] for label in found.classes}
            for text, column in found.boards[f"train_{shot}"]:
                examples[found.classes[column]].append(text)
            test = [(text, found.classes[column]) for text, column in found.boards["test"]]
            yield _task(name, shot, examples, [*pool, *(fresh[place] for place in chosen)], test)
            continue
        test = [(fresh[place], found.classes[labels[place]]) for place in chosen]
        for draw in DRAWS:
            rows = zip(found.classes, found.draw(shot, draw), strict=True)
            yield _task(name, shot, {label: [found.texts[row] for row in own] for label, own in rows}, pool, test)


def _task(name: str, shot: int, examples: dict[str, list[str]], pool: list[str], test: list[tuple[str, str]]) -> Task:
    used = {*(text for texts in examples.values() for text in texts), *(text for text, _ in test)}
    unlabelled = [text for text in dict.fromkeys(pool) if text not in used]
    return Task(name, shot, examples, unlabelled, [text for text, _ in test], [label for _, label in test])


def measure(task: Task, classifier: FewShotClassifier, learn: bool) -> dict[str, float]:
    """Accuracies in %, the share of the first stage, and how many times faster."""
    classifier.fit(task.examples, unlabelled=task.unlabelled if learn else None)
    state, truth = classifier.state_, np.array(task.truth)
    assert state.first is not None
    labels = np.array(state.labels)
    second = labels[state.scores(state.vectors(task.texts)).argmax(axis=1)] == truth
    first = labels[state.first.scored(task.texts)[1].argmax(axis=1)] == truth
    answers = classifier.answer(task.texts)
    both = np.array([answer.label for answer in answers]) == truth
    share = float(np.mean([answer.stage == 1 for answer in answers]))
    quick, slow = _seconds(task, state)
    right = {"first": first.mean(), "second": second.mean(), "cascade": both.mean(), "share": share}
    return {name: 100 * float(value) for name, value in right.items()} | {"faster": slow / (quick + (1 - share) * slow)}


def _seconds(task: Task, state: Any) -> tuple[float, float]:
    """Processor seconds per text of the first stage, and of the second."""
    texts = task.texts[:TIMED]
    encoder, seconds = open_encoder(), []
    for form in (lambda: state.first.scored(texts), lambda: encoder.encode(texts)):
        form()
        start = time.process_time()
        form()
        seconds.append((time.process_time() - start) / len(texts))
    return seconds[0], seconds[1]


def refusal(classifier: FewShotClassifier) -> None:
    """Out-of-scope texts of clinc150, 5 examples per class, reject="auto"."""
    task = next(tasks("clinc150"))
    outside = [row["text"] for row in read_lines(data_folder() / "clinc150" / "oos.jsonl")][:1000]
    print('\nRefusal, clinc150, 5 examples per class, reject="auto", in %:\n')
    print("| | out-of-scope texts refused | in-scope texts refused | in-scope accuracy |\n|---|---|---|---|")
    classifier.reject = "auto"
    classifier.fit(task.examples)
    whole = classifier._state
    for name, state in (("default", replace(whole, first=None)), ("cascade", whole)):
        classifier._state = state
        inside, apart = classifier.answer(task.texts), classifier.answer(outside)
        right = np.mean([answer.label == label for answer, label in zip(inside, task.truth, strict=True)])
        parts = (np.mean([answer.refused for answer in apart]), np.mean([answer.refused for answer in inside]), right)
        print(f"| {name} | " + " | ".join(f"{100 * part:.1f}" for part in parts) + " |", flush=True)


def main(names: Sequence[str]) -> None:
    """Print the table as Markdown."""
    kept, classifier = Kept(vectors_of("bge-small")), FewShotClassifier(encoder="cascade").open()
    state = classifier._state
    classifier._state = replace(state, model=replace(state.model, encoder=kept))
    columns = ("set", "per class", "unlabelled", "static", "default", "cascade", "lost", "first stage, %", "faster")
    print("| " + " | ".join(columns) + " |", "|---" * len(columns) + "|", sep="\n", flush=True)
    for name in names:
        found: dict[tuple[int, int], list[dict[str, float]]] = {}
        for task in tasks(name):
            for learn in (False, True):
                key = (task.shot, len(task.unlabelled) if learn else 0)
                found.setdefault(key, []).append(measure(task, classifier, learn))
        for (shot, unlabelled), values in found.items():
            mean = {key: float(np.mean([value[key] for value in values])) for key in values[0]}
            print(
                f"| {name} | {shot} | {unlabelled or ''} | {mean['first']:.1f} | {mean['second']:.1f} | "
                f"{mean['cascade']:.1f} | {mean['second'] - mean['cascade']:+.2f} | {mean['share']:.0f} | "
                f"{mean['faster']:.1f}x |",
                flush=True,
            )
    if "clinc150" in names:
        refusal(classifier)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.simplefilter("ignore")
    main(sys.argv[1:] or SETS)

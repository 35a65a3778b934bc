"""The answers to labelled texts one by one: which were wrong, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmin.classifier.explanation import Explanation, explain_text
from dmin.classifier.state import State
from dmin.data import Corpus
from dmin.encoder import FloatArray
from dmin.errors import DataError
from dmin.files import write_atomic

EXPLAINED = 100  # wrong texts, the most confident first
UNSURE = 20  # right texts, the least probable first


@dataclass(frozen=True)
class AnsweredText:
    """One labelled text with its answer; a line of `predictions.jsonl`."""

    text: str
    label: str | None  # the true one; None for an out-of-scope text without a label
    answer: str
    right: bool
    refused: bool
    in_scope: bool
    nearest: str  # the class with the highest cosine, also where the text is refused
    score: float  # its cosine
    probability: float
    own_score: float | None  # the cosine to the true class

    @property
    def fault(self) -> str:
        """What went wrong, in words; nothing where the answer is right."""
        if self.right:
            return ""
        if not self.in_scope:
            return f"out of scope, but answered as {self.nearest} ({self.score:.3f})"
        if self.refused:
            kind = "refused, though nearest to its own class" if self.nearest == self.label else "refused"
            return f"{kind}: {self.nearest} ({self.score:.3f})"
        return f"answered as {self.nearest} ({self.score:.3f}), its own class {self.label} has {self.own_score:.3f}"


@dataclass(frozen=True)
class ScoredTexts:
    """Test texts with their cosines, and out-of-scope texts with theirs."""

    labels: list[str]  # of the classes
    texts: list[str]
    truth: NDArray[Any]  # column of each text's own class, [L]
    query: Any  # [L, d], of numpy or torch
    cosines: FloatArray  # [L, C]
    scores: FloatArray  # [L, C], which decide
    outside: list[tuple[str, str | None]]  # text and label, if there is one
    outside_cosines: FloatArray  # [n, C]
    outside_scores: FloatArray  # [n, C]

    @property
    def best(self) -> NDArray[Any]:
        """The column of the class with the highest score, [L]."""
        return np.asarray(self.scores.argmax(axis=1))

    @property
    def top(self) -> FloatArray:
        """The cosine of that class, [L]; refusal goes by it."""
        return np.asarray(self.cosines[np.arange(len(self.cosines)), self.best])

    @property
    def right(self) -> NDArray[np.bool_]:
        """Is the nearest class the text's own, [L]."""
        found: NDArray[np.bool_] = self.best == self.truth
        return found

    @property
    def outside_best(self) -> NDArray[Any]:
        """The column of the class that each out-of-scope text is nearest to, [n]."""
        return np.asarray(self.outside_scores.argmax(axis=1))

    @property
    def outside_top(self) -> FloatArray:
        """The cosine of that class, [n]."""
        return np.asarray(self.outside_cosines[np.arange(len(self.outside_cosines)), self.outside_best])


def score_texts(state: State, test: Corpus, outside: Sequence[str]) -> ScoredTexts:
    """Encode and score all texts, those with a label of the classes apart from the others."""
    labels = [str(label) for label in state.labels]
    column_of = {label: column for column, label in enumerate(labels)}
    pairs = list(zip(test.texts, test.labels, strict=True))
    inside = [(text, column_of[label]) for text, label in pairs if label in column_of]
    if not inside:
        raise DataError(
            f"no text of {test.name} has a label of the examples: {', '.join(test.classes[:5])} against "
            f"{', '.join(labels[:5])}"
        )
    others: list[tuple[str, str | None]] = [(text, label) for text, label in pairs if label not in column_of]
    others += [(text, None) for text in outside]
    query = state.vectors([text for text, _ in inside])  # [L, d]
    cosines = state.cosines(query)  # [L, C]
    apart = decided = np.empty((0, len(labels)), np.float32)
    if others:
        outside_query = state.vectors([text for text, _ in others])  # [n, d]
        apart = state.cosines(outside_query)  # [n, C]
        decided = state.scores(outside_query, apart)  # [n, C]
    truth = np.array([column for _, column in inside])
    texts, scores = [text for text, _ in inside], state.scores(query, cosines)
    if state.first is not None:  # some of the answers are its own
        cosines, scores, _ = state.scored(texts)
        apart, decided, _ = state.scored([text for text, _ in others]) if others else (apart, decided, None)
    return ScoredTexts(labels, texts, truth, query, cosines, scores, others, apart, decided)


def answer_all(state: State, scored: ScoredTexts) -> tuple[AnsweredText, ...]:
    """Every text with its answer."""
    refused_label, limits, found = str(state.refused_label), state.limits, []
    truth: list[tuple[str, str | None, int | None]] = [
        (text, scored.labels[column], int(column)) for text, column in zip(scored.texts, scored.truth, strict=True)
    ]
    truth += [(text, label, None) for text, label in scored.outside]
    cosines = np.concatenate([scored.cosines, scored.outside_cosines])  # [L + n, C]
    scores = np.concatenate([scored.scores, scored.outside_scores])  # [L + n, C]
    chances = state.probabilities(scores)  # [L + n, C]
    for (text, label, own), row, score, chance in zip(truth, cosines, scores, chances, strict=True):
        best = int(score.argmax())
        refused = bool(row[best] < limits[best])
        found.append(
            AnsweredText(
                text=text, label=label, answer=refused_label if refused else scored.labels[best],
                right=refused if own is None else not refused and best == own, refused=refused, in_scope=own is not None,
                nearest=scored.labels[best], score=float(row[best]), probability=float(chance[best]),
                own_score=None if own is None else float(row[own]),
            )
        )  # fmt: skip
    return tuple(found)


def write_predictions(answers: Sequence[AnsweredText], path: Path) -> None:
    """Write every text with its answer, one JSON object per line."""
    write_atomic(path, "".join(json.dumps(asdict(answer), ensure_ascii=False) + "\n" for answer in answers))


def explain_faults(state: State, answers: Sequence[AnsweredText]) -> list[tuple[AnsweredText, Explanation]]:
    """The wrong answers with the examples that decided, those with the highest cosine first; at most `EXPLAINED`."""
    wrong = sorted((answer for answer in answers if not answer.right), key=lambda answer: -answer.score)
    return [(answer, explain_text(state, answer.text)) for answer in wrong[:EXPLAINED]]


def explain_unsure(state: State, answers: Sequence[AnsweredText]) -> list[tuple[AnsweredText, Explanation]]:
    """The right answers with the lowest probability, with the examples that decided; at most `UNSURE`."""
    right = sorted((a for a in answers if a.right and not a.refused), key=lambda answer: answer.probability)
    return [(answer, explain_text(state, answer.text)) for answer in right[:UNSURE]]

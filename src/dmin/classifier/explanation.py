"""Answers and explanations: the label of a text, and which examples decided it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmin.classifier.arrays import Array
from dmin.classifier.knowledge import ClassSupport
from dmin.classifier.state import State
from dmin.errors import DataError, printable

LEAST_DIFFERENCE = 0.0005  # of two cosines that are printed with three digits

OTHERS_SHOWN = 5  # examples of other classes that an explanation names
STAGES = {1: "1, the static encoder, which was sure", 2: "2, the default encoder"}
NOTHING = 1e-5  # a share that is rounding


@dataclass(frozen=True)
class Likely:
    """One of the most likely classes of a text."""

    label: Any
    cosine: float  # what refusal goes by
    probability: float
    decision: float  # the deciding score, as in `decision_function`


@dataclass(frozen=True)
class Answer:
    """The answer to one text."""

    label: Any  # what predict answers: the class, or the unknown label
    score: float  # cosine of the nearest class, which refusal goes by
    probability: float  # of the nearest class
    refused: bool
    likely: tuple[Likely, ...]  # the most likely classes, best first
    stage: int | None = None  # of a cascade, which answered: 1 (static) or 2; None where there is one stage

    @property
    def top(self) -> tuple[tuple[Any, float], ...]:
        """The most likely classes with their deciding scores, best first."""
        return tuple((found.label, found.decision) for found in self.likely)

    @property
    def decision(self) -> float:
        """The deciding score of the nearest class, as in `decision_function`."""
        return self.likely[0].decision


@dataclass(frozen=True)
class Share:
    """The share that one example (or a name) has in the score of the nearest class."""

    text: str
    share: float  # exact: all shares add up to the score; NaN where a method cannot tell
    without: float  # the class's score if it were not there; NaN for rows that are not its own
    is_name: bool = False
    label: Any = None  # the class that the row belongs to; None for several rows together


@dataclass(frozen=True)
class Explanation:
    """The decision for one text; it prints in a terminal and shows as a table in a notebook."""

    text: str
    label: Hashable  # what predict answers: the class, or the unknown label
    nearest: Hashable  # the class with the highest score
    score: float  # its deciding score
    runner_up: Hashable | None
    runner_up_score: float | None
    threshold: float | None  # the cosine below which the text is refused
    examples: tuple[Share, ...]  # of the nearest class, largest share first; then of other classes, where they have one
    memory: tuple[tuple[str, float], ...] = ()  # base classes that shaped the nearest class's vectors, with weights
    cosine: float = float("nan")  # of the nearest class
    unreadable: bool = False  # refused because the encoder cannot read the text
    stage: int | None = None  # of a cascade, which answered: 1 (static) or 2; None where there is one stage

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "text": self.text, "label": self.label, "nearest": self.nearest, "score": self.score, "cosine": self.cosine,
            "runner_up": self.runner_up, "runner_up_score": self.runner_up_score, "threshold": self.threshold,
            "examples": [{name: _number(value) for name, value in asdict(share).items()} for share in self.examples],
            "memory": [[name, weight] for name, weight in self.memory],
            **({} if self.stage is None else {"stage": self.stage}),
        }  # fmt: skip

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each row with a positive share without which the score would be higher, which looks odd."""
        return tuple(
            f"{'the name' if share.is_name else 'the example'} {share.text!r} points towards the text (share "
            f"{share.share:+.3f}) but less than the other rows of {self.nearest}: without it they would make up the class "
            f"alone, and the score would be {share.without:.3f}"
            for share in self.examples
            if share.share > 0 and share.without > self.score + LEAST_DIFFERENCE
        )

    def __str__(self) -> str:
        refused = ""
        if self.threshold is not None and self.cosine < self.threshold:
            refused = f" (refused: below {self.threshold:.2f}, the cosine is {self.cosine:.2f})"
        if self.unreadable:
            refused = " (refused: the encoder cannot read it)"
        nearest = printable(self.nearest)
        lines = [f"{self.text!r} -> {printable(self.label)}   score {self.score:.3f} of {nearest}{refused}"]
        if self.stage is not None:
            lines.append(f"  stage: {STAGES[self.stage]}")
        if self.runner_up is not None:
            lines.append(f"  runner-up: {printable(self.runner_up)} ({self.runner_up_score:.3f})")
        for share in self.examples:
            kind = "name" if share.is_name else "example"
            kind += f" of {printable(share.label)}" if share.label not in (None, self.nearest) else ""
            alone = "" if math.isnan(share.without) else f"   (without it: {share.without:.3f})"
            lines.append(f"  {_share(share.share)}  {kind}: {printable(share.text)}{alone}")
        if self.memory:
            lines.append("  memory: " + ", ".join(f"{printable(name)} {weight:+.2f}" for name, weight in self.memory))
        lines += [f"  note: {printable(note)}" for note in self.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        lines = "".join(
            f"<tr><td>{_share(share.share)}</td><td>{'' if math.isnan(share.without) else f'{share.without:.3f}'}</td>"
            f"<td>{'<i>name</i> ' if share.is_name else ''}{_html(share.text)}</td></tr>"
            for share in self.examples
        )
        runner = (
            f", runner-up {_html(self.runner_up)} ({self.runner_up_score:.3f})" if self.runner_up is not None else ""
        )
        memory = ", ".join(f"{_html(name)} {weight:+.2f}" for name, weight in self.memory)
        below = [*([f"memory: {memory}"] if memory else []), *(f"note: {_html(note)}" for note in self.notes)]
        return (
            f"<p>“{_html(self.text)}” → <b>{_html(self.label)}</b> ({_html(self.nearest)} {self.score:.3f}{runner})</p>"
            f"<table><tr><th>share</th><th>without it</th><th>example</th></tr>{lines}</table>"
            + "".join(f"<p><small>{line}</small></p>" for line in below)
        )


def answer_texts(state: State, X: Sequence[Any], k: int = 1) -> list[Answer]:  # noqa: N803 (scikit-learn's name)
    """Label, cosine, probability and the k most likely classes of each text, from one state."""
    if k < 1:
        raise DataError(f"k={k}: at least 1 is needed")
    if state.model.index is not None:
        return _answer_candidates(state, X, k)
    cosines, scores, by_first = state.scored(X)  # [L, C], [L, C], [L]
    probabilities = state.probabilities(scores)  # [L, C]
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]  # [L, k]
    labels, limits = state.labels, state.limits
    unreadable = state.unreadable(X) & (state.settings.reject == "auto")
    answers = []
    for text, columns in enumerate(order):
        likely = tuple(
            Likely(labels[at], float(cosines[text, at]), float(probabilities[text, at]), float(scores[text, at]))
            for at in columns
        )
        refused = bool(cosines[text, columns[0]] < limits[columns[0]]) or bool(unreadable[text])
        answers.append(_answer(state, likely, refused, _stage(state, bool(by_first[text]))))
    return answers


def _answer_candidates(state: State, X: Sequence[Any], k: int) -> list[Answer]:  # noqa: N803
    """Answers among the classes that the index finds; probabilities are among these."""
    columns, cosines, scores = state.model.candidates(state.vectors(X))  # [L, candidates], all three
    probabilities = state.probabilities(scores)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    limits = None if state.settings.reject is None else state.limits
    unreadable = state.unreadable(X) & (state.settings.reject == "auto")
    entries, answers = state.knowledge.classes, []
    for text, places in enumerate(order):
        own = columns[text]
        likely = tuple(
            Likely(
                entries[own[at]].label,
                float(cosines[text, at]),
                float(probabilities[text, at]),
                float(scores[text, at]),
            )
            for at in places
            if own[at] >= 0
        )
        below = limits is not None and bool(cosines[text, places[0]] < limits[own[places[0]]])
        answers.append(_answer(state, likely, below or bool(unreadable[text])))
    return answers


def _answer(state: State, likely: tuple[Likely, ...], refused: bool, stage: int | None = None) -> Answer:
    best = likely[0]
    label = state.refused_label if refused else best.label
    return Answer(label, best.cosine, best.probability, refused, likely, stage)


def explain_text(state: State, text: Any) -> Explanation:
    """The decision for one text, with each example's exact share of the winning score, from one state."""
    cosines, found, by_first = state.scored([text])  # [1, C], [1, C], [1]
    scores = found[0]  # [C]
    labels = state.labels
    order = np.argsort(-scores, kind="stable")
    best, runner = int(order[0]), int(order[1]) if len(order) > 1 else None
    limit, cosine = float(state.limits[best]), float(cosines[0, best])
    unreadable = bool(state.unreadable([text])[0]) and state.settings.reject == "auto"
    entry = state.knowledge.by_label.get(labels[best])
    shares: tuple[Share, ...] = ()
    if entry is not None:
        shares = _all_shares(state, entry, best, text, bool(by_first[0]))
    return Explanation(
        text=str(text),
        label=state.refused_label if cosine < limit or unreadable else labels[best],
        nearest=labels[best],
        score=float(scores[best]),
        runner_up=labels[runner] if runner is not None else None,
        runner_up_score=float(scores[runner]) if runner is not None else None,
        threshold=limit if limit > -np.inf else None,
        examples=shares,
        memory=state.model.memory_of(entry) if entry is not None else (),
        cosine=cosine,
        unreadable=unreadable,
        stage=_stage(state, bool(by_first[0])),
    )


def _stage(state: State, by_first: bool) -> int | None:
    return None if state.first is None else 1 if by_first else 2


def _all_shares(state: State, entry: ClassSupport, column: int, text: Any, by_first: bool) -> tuple[Share, ...]:
    """Shares in the score of one class, by the stage and the method that decided."""
    if by_first and state.first is not None:
        return _head_shares(state, column, *state.first.shares(text, column))
    query = state.vectors([text])  # [1, d]
    if state.model.head is None:
        return _shares(state, entry, query)
    return _head_shares(state, column, *state.model.head_shares(column, query))


def _shares(state: State, entry: ClassSupport, query: Array) -> tuple[Share, ...]:
    parts, without = state.model.shares(entry, query, state.knowledge.name_weight)
    shares = [
        Share(text, float(parts[row]), without[row], entry.named and row == len(entry.texts) - 1, entry.label)
        for row, text in enumerate(entry.texts)
    ]
    return tuple(sorted(shares, key=lambda share: -share.share))


def _head_shares(
    state: State, column: int, parts: NDArray[np.float64], left: float, without: Sequence[float]
) -> tuple[Share, ...]:
    """Shares of the adaptive head: the class's own rows, the others that count most, and the rest together."""
    found: dict[int, list[Share]] = {}
    at = 0
    for place, entry in enumerate(state.knowledge.classes):
        found[place] = [
            Share(
                text, float(parts[at + row]), without[row] if place == column else math.nan,
                entry.named and row == len(entry.texts) - 1, entry.label,
            )
            for row, text in enumerate(entry.texts)
        ]  # fmt: skip
        at += len(entry.texts)
    own = sorted(found.pop(column), key=lambda share: -share.share)
    others = sorted((share for shares in found.values() for share in shares), key=lambda share: -abs(share.share))
    others = [share for share in others if share.share]
    shown, rest = others[:OTHERS_SHOWN], others[OTHERS_SHOWN:]
    more = [Share(f"{len(rest)} more examples of other classes", sum(share.share for share in rest), math.nan)]
    gone = [Share("(what was learned from unlabelled texts, and from removed examples)", left, math.nan)]
    return (*own, *shown, *(more if rest else ()), *(gone if abs(left) > NOTHING else ()))


def _share(share: float) -> str:
    return "  ?   " if math.isnan(share) else f"{share:+.3f}"


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _html(value: object) -> str:
    return escape(printable(value))

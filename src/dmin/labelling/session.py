"""`Session`: the labelling loop as an object. It suggests, a person answers, it learns at once, and nothing is lost."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from dmin.errors import ConfigError, DataError
from dmin.labelling.forecast import EVERY, Estimate, Signals, estimate
from dmin.labelling.journal import Journal
from dmin.labelling.pile import Pile, pile_of
from dmin.labelling.selection import confidence, neighbour_agreement
from dmin.labelling.suggestions import Known, Suggestion, likely_classes, suggest_from
from dmin.labelling.vectors import FloatArray, centred, checked, encode_pile, mean_direction

BATCH = 10  # suggestions that are computed at once
# Unlabelled texts that the classifier learns from, of more a sample: 0.2 s after each batch, about 1 s when it is saved.
HELPERS, HELPERS_AT_THE_END = 2000, 5000
NEIGHBOURS_AMONG = 1000  # texts without an answer among which neighbours are compared
_LONGEST_LABEL = 200


@dataclass(frozen=True)
class Question:
    """A text to be labelled."""

    index: int  # its place in the pile
    text: str
    reason: str
    stands_for: int
    likely: tuple[
        tuple[str, float], ...
    ]  # classes with their probabilities, best first; empty before two classes exist

    @property
    def predicted(self) -> str | None:
        """What the classifier would answer now."""
        return self.likely[0][0] if self.likely else None


class Session:
    """A labelling session over a pile, saved after each answer.

    Args:
        pile: texts, or a `Pile` that `read_pile` gave.
        path: the journal; a session that is there is continued.
        examples: what is labelled already, `{label: [texts]}`.
        classifier: the `FewShotClassifier` to teach; only its settings are used. Default: a default one.
        vectors: the pile's vectors [n, d], where they are known.
        batch: suggestions that are computed at once.
        seed: of the suggestions.
        use_unlabelled: let the classifier learn from the pile's texts without an answer as well
            (`FewShotClassifier.adapt`), after each batch and when it is saved. Without effect on a model that learns from
            examples alone.

    Example:
        with Session(mails, "mails.session.jsonl") as session:
            while (question := session.next()) is not None:
                session.answer(input(f"{question.text} ({question.reason})? "))
            session.save("my-classifier")
    """

    def __init__(
        self,
        pile: Pile | Sequence[str],
        path: str | Path,
        *,
        examples: Mapping[str, Sequence[str]] | None = None,
        classifier: Any = None,
        vectors: Any = None,
        batch: int = BATCH,
        seed: int = 0,
        use_unlabelled: bool = True,
    ) -> None:
        if batch < 1:
            raise ConfigError(f"batch={batch}: at least 1 is needed")
        self.pile = pile if isinstance(pile, Pile) else pile_of(pile)
        self._given = {check_label(label): list(texts) for label, texts in (examples or {}).items()}
        self._settings = classifier
        self._batch, self._seed = batch, seed
        self._raw = checked(vectors, len(self.pile.texts)) if vectors is not None else None
        self._queue: list[Suggestion] = []
        self._question: Question | None = None
        self._taught: Any = None
        self._use_unlabelled, self._stale = use_unlabelled, True  # stale: the unlabelled texts are still to be learned
        self._confidence: Any = None  # of logistic regression about each text [n], when the queue was filled
        self._place = {row: place for place, row in enumerate(self.pile.rows)}
        self.journal = Journal(Path(path), self.pile)
        self._done = _replayed(self.journal.entries)
        self._teach_anew()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the journal, so that another session can open it; everything is saved already."""
        self.journal.close()

    # What is known

    @property
    def examples(self) -> dict[str, list[str]]:
        """All examples: those given at the start, then the answers in order."""
        found = {label: list(texts) for label, texts in self._given.items()}
        for entry in self.answers:
            texts = found.setdefault(entry["label"], [])
            if entry["text"] not in texts:
                texts.append(entry["text"])
        return found

    @property
    def labels(self) -> list[str]:
        """The classes so far."""
        return list(self.examples)

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The answers that stand: not undone, not skipped."""
        return [entry for entry in self._done if entry["do"] == "answer"]

    @property
    def unlabelled(self) -> list[str]:
        """The texts of the pile without an answer."""
        known = {text for texts in self.examples.values() for text in texts}
        return [text for text in self.pile.texts if text not in known]

    @property
    def classifier(self) -> Any:
        """The classifier as taught so far; None before there are two classes."""
        return self._taught

    @property
    def estimate(self) -> Estimate | None:
        """Accuracy on the texts without an answer now, and a forecast; None before ten predicted answers."""
        signals = self.signals
        return None if signals is None else estimate(signals)

    @property
    def signals(self) -> Signals | None:
        """What the estimate rests on; None before ten predicted answers."""
        right = tuple(
            entry["predicted"] == entry["label"] for entry in self.answers if entry.get("predicted") is not None
        )
        if len(right) < EVERY or self._taught is None:
            return None
        answered = {self._place.get(entry["row"]) for entry in self.answers}
        rest = np.array([place for place in range(len(self.pile.texts)) if place not in answered], int)
        if len(rest) > NEIGHBOURS_AMONG:
            rest = np.sort(np.random.default_rng(self._seed).permutation(rest)[:NEIGHBOURS_AMONG])
        state = self._taught.state_
        scores = state.scores(state.model.place(self._raw_vectors[rest]))  # [n, classes]
        agreement = neighbour_agreement(self._vectors[1][rest], scores.argmax(axis=1)) if len(rest) else 0.0
        return Signals(tuple(len(texts) for texts in self.examples.values()), agreement, right)

    # The loop

    def next(self) -> Question | None:
        """The text to label now; the same one until it is answered or skipped. None when nothing new is left."""
        if self._question is None:
            self._question = self._ask()
        return self._question

    def answer(self, label: str) -> Estimate | None:
        """Label the current text: saved, then learned. Every ten answers, what accuracy is estimated."""
        question = self._current()
        label = check_label(label)
        self._add(
            {
                "do": "answer", "row": self.pile.rows[question.index], "text": question.text, "label": label,
                "predicted": question.predicted, "stands_for": question.stands_for,
                "confidence": None if self._confidence is None else round(float(self._confidence[question.index]), 4),
            }
        )  # fmt: skip
        self._question = None
        self._learn(label, question.text)
        return self.estimate if len(self.answers) % EVERY == 0 else None

    def skip(self) -> None:
        """Leave the current text without a label; it is not asked again."""
        question = self._current()
        self._add({"do": "skip", "row": self.pile.rows[question.index]})
        self._question = None

    def undo(self) -> Question | None:
        """Take back the last answer or skip; its text is the current one again. None when there is nothing to undo."""
        if not self._done:
            return None
        entry = self._done[-1]
        self.journal.add({"do": "undo"})
        self._done.pop()
        if entry["do"] == "answer":
            self._teach_anew()
        place = self._place.get(entry["row"])
        self._question = None
        if place is not None:
            suggestion = Suggestion(place, self.pile.texts[place], "taken back", int(entry.get("stands_for", 1)))
            self._question = self._question_of(suggestion)
        return self._question

    def save(self, path: str | Path) -> Any:
        """Fit a classifier on all examples and save it as a folder; return it."""
        if len(self.labels) < 2:
            raise DataError(f"{len(self.labels)} class is labelled: a classifier needs at least two")
        fitted = self._fresh().fit(self.examples)
        self._learn_unlabelled(fitted, HELPERS_AT_THE_END)
        fitted.save(path)
        return fitted

    # Inside

    def _current(self) -> Question:
        question = self.next()
        if question is None:
            raise DataError("nothing is left to label: every text that differs from the labelled ones was asked")
        return question

    def _add(self, entry: dict[str, Any]) -> None:
        self.journal.add(entry)
        self._done.append(entry)

    def _ask(self) -> Question | None:
        handled = {self._place.get(entry["row"]) for entry in self._done}
        self._queue = [suggestion for suggestion in self._queue if suggestion.index not in handled]
        if not self._queue:
            self._stale = True
            self._refresh()
            left_out = [place for place in handled if place is not None]
            known = self._known()
            if len(set(known.labels)) > 1:
                self._confidence = confidence(self._vectors[1], known.vectors, known.labels)
            self._queue = suggest_from(
                self.pile.texts, self._vectors[1], known, n=self._batch, seed=self._seed, leave_out=left_out,
                classifier=self._taught,
            )  # fmt: skip
        return self._question_of(self._queue.pop(0)) if self._queue else None

    def _question_of(self, suggestion: Suggestion) -> Question:
        self._refresh()
        likely = likely_classes(self._taught, [suggestion.text])[0] if self._taught is not None else []
        return Question(suggestion.index, suggestion.text, suggestion.reason, suggestion.stands_for, tuple(likely))

    @cached_property
    def _raw_vectors(self) -> FloatArray:
        """The pile's vectors as the encoder gives them, [n, d]."""
        return self._raw if self._raw is not None else encode_pile(self.pile.texts, self._taught or self._settings)

    @cached_property
    def _vectors(self) -> tuple[FloatArray, FloatArray]:
        """The pile's mean [d] and its centred vectors [n, d]."""
        mean = mean_direction(self._raw_vectors)
        return mean, centred(self._raw_vectors, mean)

    @cached_property
    def _given_known(self) -> Known:
        """The examples given at the start, with their vectors."""
        pairs = [(text, label) for label, texts in self._given.items() for text in texts]
        mean, pile = self._vectors
        if not pairs:
            return Known((), (), np.empty((0, pile.shape[1]), np.float32))
        texts, labels = (tuple(column) for column in zip(*pairs, strict=True))
        return Known(texts, labels, centred(encode_pile(texts, self._taught or self._settings), mean))

    def _known(self) -> Known:
        given, pile = self._given_known, self._vectors[1]
        answers = [entry for entry in self.answers if entry["row"] in self._place]
        rows = [self._place[entry["row"]] for entry in answers]
        return Known(
            (*given.texts, *(entry["text"] for entry in answers)),
            (*given.labels, *(entry["label"] for entry in answers)),
            np.concatenate([given.vectors, pile[rows]]),
        )

    def _fresh(self) -> Any:
        """A classifier that knows nothing, with the settings that were given."""
        from dmin.classifier import FewShotClassifier

        return type(self._settings)(**self._settings.get_params()) if self._settings else FewShotClassifier()

    def _teach_anew(self) -> None:
        examples = self.examples
        self._taught = self._fresh().fit(examples) if len(examples) > 1 else None
        self._stale = True

    def _refresh(self) -> None:
        """Learn from unlabelled texts where that is due: at each batch, and after an answer was taken back."""
        if self._stale and self._taught is not None:
            self._learn_unlabelled(self._taught, HELPERS)
            self._stale = False

    def _learn_unlabelled(self, classifier: Any, most: int) -> None:
        """Let a classifier learn from the texts without an answer, at most so many."""
        head = classifier.state_.model.head
        if not self._use_unlabelled or head is None or head.dual is None:
            return  # a trained model, or more classes than the logistic part takes: examples alone
        known = {text for texts in self.examples.values() for text in texts}
        places = [place for place, text in enumerate(self.pile.texts) if text not in known]
        if len(places) > most:
            drawn = np.random.default_rng(self._seed).permutation(len(places))[:most]
            places = [places[place] for place in np.sort(drawn)]
        if places:
            classifier.adapt([self.pile.texts[place] for place in places], vectors=self._raw_vectors[places])

    def _learn(self, label: str, text: str) -> None:
        if self._taught is None:
            self._teach_anew()
        else:
            self._taught.partial_fit({label: [text]})


def check_label(label: Any) -> str:
    """A label as it is kept: a string of printable characters, trimmed.

    Raises:
        DataError: for anything that a file, a terminal or a person could not carry.
    """
    if not isinstance(label, str):
        raise DataError(f"the label {label!r} is a {type(label).__name__}: a string is needed")
    found = unicodedata.normalize("NFC", label).strip()
    if not found:
        raise DataError(f"the label {label!r} is empty")
    odd = [character for character in found if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")]
    if odd:
        raise DataError(f"the label {label!r} holds {odd[0]!r}, which cannot be shown or typed: leave it out")
    if len(found) > _LONGEST_LABEL:
        raise DataError(f"the label {found[:40]!r}... has {len(found)} characters: at most {_LONGEST_LABEL} are taken")
    return found


def _replayed(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries that stand: an undo takes the one before it away."""
    done: list[dict[str, Any]] = []
    for entry in entries:
        if entry["do"] != "undo":
            done.append(entry)
        elif done:
            done.pop()
    return done

"""The one place that uses the classifier: a fitted state per collection, made anew from the store at each revision.

Every process fits from the stored examples in the stored order, never by adding to what it has, so that two processes that
stand at one revision give the same answers.
"""

from __future__ import annotations

import copy
import logging
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmin.classifier.explanation import Answer
from dmin.errors import DminError, one_line
from dmin.server import queries, schemas
from dmin.server.database import Database
from dmin.server.problems import Problem
from dmin.server.settings import Settings
from dmin.server.vectors import VectorMemory

_log = logging.getLogger("dmin.server")


@dataclass(frozen=True)
class Fitted:
    """A collection as it is answered: a classifier of one revision, or why there is none."""

    name: str
    revision: int
    classifier: Any  # None where the collection cannot answer yet
    reason: str = ""

    def ready(self) -> Any:
        """The classifier, or a 409 problem."""
        if self.classifier is None:
            raise Problem(409, "not-ready", self.reason)
        return self.classifier


class Engine:
    """Classifiers of all collections, with one encoder."""

    def __init__(self, settings: Settings, database: Database) -> None:
        from dmin import FewShotClassifier

        self._settings, self._database = settings, database
        # Opened once: copies share model and encoder, and `fit` replaces what a copy knows.
        self._opened = FewShotClassifier(settings.model, encoder=settings.encoder, backend=settings.backend).fit(
            {"one": ["the first of two"], "two": ["the second of two"]}
        )
        encoder: Any = self._opened.encoder_
        self.encoder_name = str(getattr(encoder, "name", "")) or None
        self.width = int(encoder.width)
        self.memory = VectorMemory(encoder.encode, str(encoder.key))
        encoder.encode = self.memory.encode
        self._fitted: dict[str, Fitted] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def state(self, name: str) -> Fitted:
        """The state that a collection is answered from; a 404 problem where there is none."""
        found = self._fitted.get(name)
        if found is None:
            found = self.refresh(name)
        if found is None:
            raise queries.no_such_collection(name)
        return found

    def known_state(self, name: str) -> Fitted | None:
        """The state of a collection that is in memory; asks no database."""
        return self._fitted.get(name)

    def known(self) -> dict[str, int]:
        """The revision of every collection that is fitted."""
        return {name: found.revision for name, found in list(self._fitted.items())}

    def refresh(self, name: str) -> Fitted | None:
        """Fit a collection as the store has it now, unless that is done; None where it is not there."""
        with self._guard:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            with self._database.reading() as connection:
                content = queries.content(connection, name)
            if content is None:
                self._fitted.pop(name, None)
                return None
            current = self._fitted.get(name)
            if current is None or current.revision < content.revision:
                current = self._fitted[name] = self._fit(content)
            return current

    def _fit(self, content: queries.Content) -> Fitted:
        """A classifier of this content; what cannot be fitted is a state with a reason."""
        use_one_thread()
        texts = [text for group in content.examples.values() for text in group]
        self.memory.load(self._database, texts)
        if len(content.examples) < 2:
            return Fitted(content.name, content.revision, None, "Two classes are needed: add examples of another one.")
        rejects = [content.settings.get("reject", "auto")]
        if rejects == ["auto"]:
            rejects.append(None)  # a few examples may be too few to learn a threshold: then nothing is refused yet
        for reject in rejects:
            classifier = copy.copy(self._opened).set_params(
                reject=reject,
                use_names=content.settings.get("use_names", "auto"),
                descriptions=content.descriptions or None,
            )
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # contradictions are the doctor's to report
                    classifier.fit(content.examples)
                break
            except DminError as error:
                reason = one_line(error)
        else:
            return Fitted(content.name, content.revision, None, reason)
        self.memory.save(self._database, texts)
        return Fitted(content.name, content.revision, classifier)

    # What the classifier is asked

    def classify(self, fitted: Fitted, texts: Sequence[str], top_k: int) -> list[schemas.AnswerToText]:
        """The answers to texts, encoded together."""
        classifier = fitted.ready()
        return [_answer(found) for found in classifier.answer(list(texts), top_k)]

    def explain(self, fitted: Fitted, text: str) -> schemas.Reason:
        """The examples that decided."""
        found = fitted.ready().explain(text)
        shares = [
            schemas.ShareOfScore(
                text=share.text, share=_number(share.share), without=_number(share.without), is_name=share.is_name
            )
            for share in found.examples
        ]
        return schemas.Reason(
            nearest=str(found.nearest), score=found.score, threshold=_number(found.threshold), examples=shares
        )

    def check(self, fitted: Fitted) -> Any:
        """The doctor's report."""
        return fitted.ready().check()

    def vectors(self, texts: Sequence[str]) -> Any:
        """Vectors of texts, [n, d]."""
        return self.memory.encode(list(texts))

    def suggest(self, fitted: Fitted, texts: Sequence[str], n: int, seed: int) -> list[Any]:
        """Texts whose label is worth most, from `dmin.suggest`."""
        from dmin.labelling import suggest

        return list(suggest(list(texts), fitted.classifier, n=n, seed=seed, vectors=self.vectors(texts)))


def use_one_thread() -> None:
    """One thread for torch in this thread: threads that share a small product spin more than they work."""
    with suppress(ModuleNotFoundError):  # the default classifier does without it
        import torch

        torch.set_num_threads(1)


def _answer(found: Answer) -> schemas.AnswerToText:
    top = [
        schemas.Ranked(label=str(one.label), probability=_clean(one.probability), cosine=_clean(one.cosine))
        for one in found.likely
    ]
    return schemas.AnswerToText(
        label=None if found.refused else str(found.label),
        probability=_clean(found.probability), cosine=_clean(found.score), refused=bool(found.refused), top=top,
    )  # fmt: skip


def _clean(value: Any) -> float:
    """A number for JSON: float32 noise beyond six digits is no information."""
    return round(float(value), 6)


def _number(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else _clean(value)

"""`suggest`: the texts of a pile whose label is worth most now, each with the reason in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmin.data.corpus import plain_text
from dmin.errors import ConfigError, DataError
from dmin.labelling.pile import readable
from dmin.labelling.selection import choose_rows, highest_cosine, uncertainty
from dmin.labelling.vectors import FloatArray, centred, checked, encode_pile, mean_direction

CLOSE = 0.25  # difference of two probabilities below which a text lies between two classes
_UNLIKE = 0.6  # of the examples' typical cosine with their nearest neighbour: below that a text is unlike all of them


@dataclass(frozen=True)
class Suggestion:
    """A text worth labelling."""

    index: int  # its place in the list of texts
    text: str
    reason: str  # in words
    stands_for: int  # texts of the pile that are nearer to it than to anything else chosen or labelled
    likely: tuple[str, ...] = ()  # what the classifier would answer, best first


@dataclass(frozen=True)
class Known:
    """What is labelled already: texts, labels and vectors [m, d]."""

    texts: tuple[str, ...]
    labels: tuple[Any, ...]
    vectors: FloatArray


def suggest(
    texts: Sequence[str],
    classifier: Any = None,
    n: int = 20,
    seed: int = 0,
    *,
    vectors: Any = None,
    leave_out: Sequence[int] = (),
) -> list[Suggestion]:
    """The `n` texts of a pile whose label is worth most, best first.

    Without a classifier they cover the pile: each is typical of a region that no other covers. With one they are those
    that the classifier is unsure about, weighted by how many texts they stand for: between two classes, in regions that
    no example covers, or unlike all that is labelled. Repeated and nearly equal texts are suggested once.

    Args:
        texts: the pile.
        classifier: a fitted `FewShotClassifier`; its examples are what is labelled.
        n: how many; fewer come back where the pile has no more different texts.
        seed: of the sample that is drawn from a pile of more than 5,000 texts.
        vectors: the pile's vectors [n, d], where they are known; without them, the classifier's encoder and its cache.
        leave_out: places of texts that must not be suggested, for example because they were skipped.

    Example:
        >>> [found.text for found in suggest(["hello", "Hello ", "where is my parcel"], n=2)]
        ['hello', 'where is my parcel']
    """
    if n < 1:
        raise ConfigError(f"n={n}: at least 1 suggestion must be asked for")
    if isinstance(texts, str) or not len(texts):
        raise DataError("the pile is empty: a list of texts is needed" if not texts else "the pile is one string")
    usable = [place for place, text in enumerate(texts) if readable(text) is not None]
    if not usable:
        raise DataError(f"none of the {len(texts)} texts can be read: they are empty or not strings")
    if vectors is None:
        found = encode_pile([texts[place] for place in usable], classifier)
    else:
        found = checked(vectors, len(texts))[usable]
    known = known_examples(classifier, found.shape[1])
    mean = mean_direction(found)
    pile = centred(found, mean)
    known = Known(known.texts, known.labels, centred(known.vectors, mean))
    return suggest_from(
        [texts[place] for place in usable], pile, known, n=n, seed=seed, classifier=classifier, places=usable,
        leave_out=leave_out,
    )  # fmt: skip


def known_examples(classifier: Any, width: int) -> Known:
    """The examples of a classifier with their vectors; nothing where there is no classifier."""
    pairs = [(text, label) for label, rows in classifier.examples_.items() for text in rows] if classifier else []
    if not pairs:
        return Known((), (), np.empty((0, width), np.float32))
    texts, labels = (tuple(column) for column in zip(*pairs, strict=True))
    if all(hasattr(text, "vector") for text in texts):  # a classifier of vectors keeps them with their names
        vectors = np.stack([text.vector for text in texts])
    else:
        vectors = encode_pile(texts, classifier)
    if vectors.shape[1] != width:
        raise DataError(f"the pile's vectors have width {width}, the examples' {vectors.shape[1]}: use one encoder")
    return Known(texts, labels, vectors)


def suggest_from(
    texts: Sequence[str],
    pile: FloatArray,
    known: Known,
    *,
    n: int,
    seed: int = 0,
    classifier: Any = None,
    places: Sequence[int] | None = None,
    leave_out: Sequence[int] = (),
) -> list[Suggestion]:
    """Like `suggest`, for a pile whose centred vectors [n, d] are at hand; `places` are its texts' indices outside."""
    places = range(len(texts)) if places is None else places
    left_out = set(leave_out)
    seen = {plain_text(text) for text in known.texts}
    taken = []
    for row, text in enumerate(texts):
        plain = plain_text(text)
        if places[row] in left_out or plain in seen:
            taken.append(row)
        seen.add(plain)
    weights = uncertainty(pile, known.vectors, known.labels) if known.labels else None
    chosen = choose_rows(pile, n, known=known.vectors, weights=weights, taken=taken, seed=seed)
    answers: list[list[tuple[str, float]]] = [[] for _ in chosen.rows]
    if chosen.rows and len(set(known.labels)) > 1 and getattr(classifier, "encoder", "precomputed") != "precomputed":
        answers = likely_classes(classifier, [texts[row] for row in chosen.rows])
    near = highest_cosine(pile[list(chosen.rows)], known.vectors)
    unlike = _unlike_limit(known)
    return [
        Suggestion(
            places[row], texts[row], _reason(likely, chosen.stands_for[rank], bool(near[rank] < unlike)),
            chosen.stands_for[rank], tuple(label for label, _ in likely),
        )
        for rank, (row, likely) in enumerate(zip(chosen.rows, answers, strict=True))
    ]  # fmt: skip


def likely_classes(classifier: Any, texts: Sequence[str], most: int = 9) -> list[list[tuple[str, float]]]:
    """For each text the most likely classes with their probabilities, best first."""
    probabilities = classifier.predict_proba(texts)  # [texts, classes]
    classes = [str(label) for label in classifier.classes_]
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :most]
    return [
        [(classes[place], float(row[place])) for place in best] for row, best in zip(probabilities, order, strict=True)
    ]


def _unlike_limit(known: Known) -> float:
    """The cosine below which a text is unlike all examples, by the cosines that the examples have among themselves."""
    count = len(known.labels)
    if count < 3:
        return 0.1 if count else -1.0
    cosines = known.vectors @ known.vectors.T  # [m, m]
    np.fill_diagonal(cosines, -1)
    return _UNLIKE * float(np.median(cosines.max(axis=1)))


def _reason(likely: Sequence[tuple[str, float]], stands_for: int, unlike: bool) -> str:
    similar = f"stands for {stands_for} similar text{'s' if stands_for != 1 else ''}"
    if unlike:
        return f"like nothing you have labelled; {similar}"
    if len(likely) > 1 and likely[0][1] - likely[1][1] < CLOSE:
        return f"between {likely[0][0]} and {likely[1][0]}; {similar}"
    return similar

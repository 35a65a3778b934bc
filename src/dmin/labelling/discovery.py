"""`discover`: proposed classes for a pile without any, or new themes among what a classifier refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmin.data.corpus import plain_text
from dmin.errors import ConfigError, DataError
from dmin.labelling.clusters import Clustering, cluster
from dmin.labelling.pile import readable
from dmin.labelling.vectors import FloatArray, centred, checked, encode_pile
from dmin.labelling.words import propose_names, telling_words
from dmin.progress import progress

TYPICAL = 5  # texts that represent a theme
_ANSWERED_AT_ONCE = 256


class NothingRefusedError(DataError):
    """A classifier answers every text of the pile, so there are no new themes."""


@dataclass(frozen=True)
class Theme:
    """A proposed class."""

    name: str
    size: int
    words: tuple[str, ...]  # that set it apart
    typical: tuple[str, ...]  # its most typical texts, no two nearly equal
    rows: tuple[int, ...]  # places of its texts in the pile


@dataclass(frozen=True)
class Grain:
    """The themes at one grain size, largest first, and the places of the texts that fit nowhere."""

    name: str  # coarse, medium or fine
    themes: tuple[Theme, ...]
    nowhere: tuple[int, ...]


@dataclass(frozen=True)
class Discovery:
    """What `discover` found.

    Args:
        texts: the pile.
        grains: from coarse to fine.
        looked_at: places of the texts that were clustered: all, or what the classifier refuses.
        vectors: their centred vectors, for a map.
    """

    texts: tuple[str, ...]
    grains: tuple[Grain, ...]
    looked_at: tuple[int, ...]
    vectors: FloatArray

    def grain(self, name: str = "medium") -> Grain:
        """The grain of this name; the only one where the pile was too small for more."""
        return next((grain for grain in self.grains if grain.name == name), self.grains[0])


def discover(
    texts: Sequence[str], classifier: Any = None, *, count: int | None = None, seed: int = 0, vectors: Any = None
) -> Discovery:
    """Propose classes for a pile.

    Args:
        texts: the pile.
        classifier: a fitted `FewShotClassifier` that refuses (`reject="auto"`): only what it refuses is looked at.
        count: themes of the medium grain; without it, chosen by the silhouette.
        seed: of the clustering.
        vectors: the pile's vectors [n, d], where they are known.
    """
    if isinstance(texts, str) or not len(texts):
        raise DataError("the pile is empty: a list of texts is needed")
    if count is not None and count < 1:
        raise ConfigError(f"count={count}: at least 1 theme must be asked for")
    places = [place for place, text in enumerate(texts) if readable(text) is not None]
    if classifier is not None:
        places = refused(texts, places, classifier)
        if not places:
            raise NothingRefusedError(f"the known classes refuse none of the {len(texts)} texts: nothing new is found")
    if not places:
        raise DataError(f"none of the {len(texts)} texts can be read: they are empty or not strings")
    found = checked(vectors, len(texts))[places] if vectors is not None else _encoded(texts, places, classifier)
    pile = centred(found)
    shown = [str(texts[place]) for place in places]
    grains = tuple(_grain(part, shown, places, pile) for part in cluster(pile, count=count, seed=seed))
    return Discovery(tuple(map(str, texts)), grains, tuple(places), pile)


def refused(texts: Sequence[str], places: Sequence[int], classifier: Any) -> list[int]:
    """The places of the texts that a classifier refuses.

    Raises:
        ConfigError: when it never refuses anything.
    """
    if classifier.reject is None:
        raise ConfigError("the classifier refuses nothing: make it with reject='auto'")
    found = []
    with progress("classifying", len(places), unit="texts", show=len(places) > 500) as advance:
        for start in range(0, len(places), _ANSWERED_AT_ONCE):
            block = places[start : start + _ANSWERED_AT_ONCE]
            answers = classifier.answer([texts[place] for place in block])
            found += [place for place, answer in zip(block, answers, strict=True) if answer.refused]
            advance(len(block))
    return found


def _encoded(texts: Sequence[str], places: Sequence[int], classifier: Any) -> FloatArray:
    return encode_pile([texts[place] for place in places], classifier)


def _grain(part: Clustering, texts: Sequence[str], places: Sequence[int], pile: FloatArray) -> Grain:
    count = len(part.centres)
    words = telling_words(texts, part.assigned, count)
    themes = []
    for number, name in enumerate(propose_names(words)):
        rows = np.flatnonzero(part.assigned == number)
        order = rows[np.argsort(-(pile[rows] @ part.centres[number]), kind="stable")]
        themes.append(
            Theme(
                name,
                len(rows),
                tuple(words[number]),
                _typical(texts, order, pile),
                tuple(places[int(row)] for row in rows),
            )
        )
    nowhere = tuple(places[int(row)] for row in np.flatnonzero(part.assigned < 0))
    return Grain(part.grain, tuple(themes), nowhere)


def _typical(texts: Sequence[str], order: Any, pile: FloatArray) -> tuple[str, ...]:
    """The first texts of an order that are not nearly equal to one before."""
    chosen: list[int] = []
    plain: set[str] = set()
    for row in order:
        if len(chosen) == TYPICAL:
            break
        text = plain_text(texts[row])
        if text in plain or (chosen and float((pile[chosen] @ pile[row]).max()) > 0.97):
            continue
        chosen.append(int(row))
        plain.add(text)
    return tuple(texts[row] for row in chosen)

"""Episodes (C classes with K support texts and some queries each): seeded samplers, and stored lists of episodes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from dmin.data.corpus import Corpus
from dmin.errors import DataError
from dmin.files import read_document, write_json


@dataclass(frozen=True)
class Episode:
    """One task. Numbers are indices of texts in the corpus; the order of classes is random and carries no information."""

    classes: tuple[str, ...]  # C names
    support: tuple[tuple[int, ...], ...]  # [C][K]
    query: tuple[tuple[int, ...], ...]  # [C][queries]: query[c] belongs to class c

    @property
    def query_rows(self) -> list[int]:
        """The queries in one list [L], class by class."""
        return [index for rows in self.query for index in rows]

    @property
    def query_labels(self) -> list[int]:
        """The class number of each query [L]."""
        return [number for number, rows in enumerate(self.query) for _ in rows]


class EpisodeSampler:
    """Draws episode `number` of a seed; the same number always gives the same episode, in any order of calls.

    Args:
        corpus: the texts.
        classes: the classes to draw from; those with fewer than shot + queries texts are left out (see `left_out`).
        way: number C of classes.
        shot: number K of support texts per class.
        queries: number of query texts per class.
        seed: names the sequence of episodes.
    """

    def __init__(
        self, corpus: Corpus, classes: Sequence[str], way: int, shot: int, queries: int = 10, seed: int = 0
    ) -> None:
        if min(way, shot, queries) < 1:
            raise DataError(f"way {way}, shot {shot} and queries {queries} must all be at least 1")
        self.corpus, self.way, self.shot, self.queries, self.seed = corpus, way, shot, queries, seed
        self.classes, self.left_out = corpus.large_enough(classes, shot + queries)
        if len(self.classes) < way:
            small = (
                f"; left out for having fewer than {shot} + {queries} texts: {', '.join(self.left_out[:5])}"
                + (f" and {len(self.left_out) - 5} more" if len(self.left_out) > 5 else "")
                + " (lower --shot or --queries)"
                if self.left_out
                else ""
            )
            raise DataError(
                f"{corpus.name}: {way}-way episodes need {way} classes, but there are {len(self.classes)}{small}; "
                "lower --way"
            )

    def episode(self, number: int) -> Episode:
        """Return episode `number`."""
        random = np.random.default_rng([self.seed, number])
        chosen = random.choice(len(self.classes), size=self.way, replace=False)
        names = tuple(self.classes[index] for index in chosen)
        support, query = [], []
        for name in names:
            rows = self.corpus.by_class[name]
            drawn = random.choice(len(rows), size=self.shot + self.queries, replace=False)
            picked = tuple(rows[index] for index in drawn)
            support.append(picked[: self.shot])
            query.append(picked[self.shot :])
        return Episode(names, tuple(support), tuple(query))

    def take(self, count: int) -> EpisodeList:
        """Return episodes 0 .. count-1 as a list that can be stored."""
        return EpisodeList(self.corpus.fingerprint, tuple(self.episode(number) for number in range(count)))


class VariedSampler:
    """Like `EpisodeSampler`, with a way and a shot that vary from episode to episode.

    Where several data sets are joined, an episode has classes of one of them only: classes of one domain are the harder
    task, and the one that users have.

    Args:
        corpus: the texts.
        classes: the classes to draw from.
        ways: smallest and largest number of classes; fewer where a set has fewer.
        shots: the numbers of support texts to choose from.
        queries: number of query texts per class.
        seed: of the sequence of episodes.
        batch: number of consecutive episodes that have the same shape.
    """

    def __init__(
        self,
        corpus: Corpus,
        classes: Sequence[str],
        ways: tuple[int, int],
        shots: Sequence[int],
        queries: int,
        seed: int,
        batch: int = 1,
    ) -> None:
        self.corpus, self.ways, self.shots, self.queries = corpus, ways, tuple(shots), queries
        self.seed, self.batch = seed, batch
        self.shot = max(self.shots)
        groups: dict[str, list[str]] = {}
        enough, self.left_out = corpus.large_enough(classes, self.shot + queries)
        for label in enough:
            groups.setdefault(corpus.origin.get(label, corpus.name), []).append(label)
        self.groups = [group for group in groups.values() if len(group) >= ways[0]]
        if not self.groups:
            # Raises the error that says what is missing.
            EpisodeSampler(corpus, classes, ways[0], self.shot, queries, seed)
        self._sampler = lru_cache(maxsize=None)(self._make)

    def episode(self, number: int) -> Episode:
        """Return episode `number`."""
        random = np.random.default_rng([self.seed, 5, number // self.batch])
        group = int(random.integers(len(self.groups)))
        way = int(random.integers(self.ways[0], min(self.ways[1], len(self.groups[group])) + 1))
        return self._sampler(group, way, int(random.choice(self.shots))).episode(number)

    def _make(self, group: int, way: int, shot: int) -> EpisodeSampler:
        return EpisodeSampler(self.corpus, self.groups[group], way, shot, self.queries, self.seed)


Row = Annotated[int, Field(ge=0)]


class EpisodeDocument(BaseModel):
    """An episode as it is stored."""

    model_config = ConfigDict(strict=True)

    classes: list[str]
    support: list[list[Row]]
    query: list[list[Row]]


class EpisodesDocument(BaseModel):
    """A stored list of episodes."""

    model_config = ConfigDict(strict=True)

    hash: str
    corpus: str
    episodes: list[EpisodeDocument]


@dataclass(frozen=True)
class EpisodeList:
    """A fixed list of episodes of one corpus, so that every method is measured on the same tasks."""

    corpus_fingerprint: str
    episodes: tuple[Episode, ...]

    def __iter__(self) -> Iterator[Episode]:
        return iter(self.episodes)

    def __len__(self) -> int:
        return len(self.episodes)

    @property
    def hash(self) -> str:
        """SHA-256 over corpus and episodes."""
        return hashlib.sha256(self._content().encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Store the list with its hash."""
        write_json(path, {"hash": self.hash, **json.loads(self._content())})

    @classmethod
    def load(cls, path: Path, corpus: Corpus) -> EpisodeList:
        """Read a stored list; refuse one that was changed, or that belongs to another corpus."""
        try:
            stored = read_document(path, EpisodesDocument)
        except DataError as error:
            raise DataError(f"{path} is not a list of episodes: {error}") from error
        episodes = tuple(
            Episode(tuple(item.classes), tuple(map(tuple, item.support)), tuple(map(tuple, item.query)))
            for item in stored.episodes
        )
        loaded = cls(stored.corpus, episodes)
        if loaded.hash != stored.hash:
            raise DataError(f"{path} was changed: its hash does not match its episodes")
        if loaded.corpus_fingerprint != corpus.fingerprint:
            raise DataError(f"{path} belongs to other texts than {corpus.name} holds now")
        for episode in episodes:
            rows = [row for part in (*episode.support, *episode.query) for row in part]
            if not len(episode.classes) == len(episode.support) == len(episode.query) or max(rows, default=0) >= len(
                corpus.texts
            ):
                raise DataError(f"{path} holds an episode that is not of {corpus.name}")
        return loaded

    def _content(self) -> str:
        content = {"corpus": self.corpus_fingerprint, "episodes": [asdict(episode) for episode in self.episodes]}
        return json.dumps(content, separators=(",", ":"), ensure_ascii=True)

"""Training episodes whose number of classes and examples varies, each from the classes of one data set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dmin.data.corpus import Corpus
from dmin.data.episodes import Episode, EpisodeSampler


class VariedSampler:
    """Draws episode `number` of a seed, like `EpisodeSampler`, with a way and a shot of its own.

    An episode holds classes of one data set only, where several are joined: classes of one domain are the harder task,
    and the one that users have.

    Args:
        corpus: the texts.
        classes: the classes to draw from.
        ways: smallest and largest number of classes; fewer where a set has fewer.
        shots: the numbers of support texts to choose from.
        queries: number of query texts a class.
        seed: names the sequence of episodes.
        batch: so many episodes in a row have the same shape.
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
            # Says what is missing, with the way out.
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

"""The protocol: every method scores the very same stored episodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dmin.data import Corpus, Episode, EpisodeList, EpisodeSampler
from dmin.encoder import EncoderNetwork, VectorCache
from dmin.errors import DataError
from dmin.evaluation.statistics import Interval, mean_interval
from dmin.methods import FewShotMethod, FineTunesEncoder
from dmin.methods.base import Inputs
from dmin.model import TrainedModel
from dmin.progress import progress
from dmin.threads import one_thread
from dmin.training.sources import EncodedTexts, TextSource
from dmin.training.stage2 import score_episode

# Test episodes draw by a seed of their own, the same for every method and training seed.
TEST_SEED = 2_000_003


class Scorer(Protocol):
    """Scores the queries of an episode: [L, C], the highest wins."""

    def __call__(self, episode: Episode) -> Tensor: ...


class MethodScorer:
    """Scores by a method on encoded texts; with `name_rows`, each class's name stands among its examples."""

    def __init__(self, method: FewShotMethod, texts: EncodedTexts, name_rows: Mapping[str, int] | None = None) -> None:
        self.method, self.texts, self.name_rows = method, texts, name_rows

    @torch.no_grad()
    def __call__(self, episode: Episode) -> Tensor:
        return score_episode(self.method, self.texts, episode, self.name_rows)


class FineTuneScorer:
    """Scores by fine-tuning the whole encoder in each episode."""

    def __init__(self, method: FineTunesEncoder, network: EncoderNetwork, source: TextSource) -> None:
        self.method, self.network, self.source = method, network, source

    def __call__(self, episode: Episode) -> Tensor:
        support = [self.source.token_ids(torch.tensor(rows)) for rows in episode.support]
        return self.method.score_texts(self.network, support, self.source.token_ids(torch.tensor(episode.query_rows)))


@dataclass
class EpisodeResults:
    """What a method did on a list of episodes."""

    accuracies: list[float] = field(default_factory=list)  # one per episode
    confusion: Counter[tuple[str, str]] = field(default_factory=Counter)  # (true class, answer) -> queries
    asked: Counter[int] = field(default_factory=Counter)  # row of a query -> episodes
    wrong: Counter[tuple[int, str]] = field(default_factory=Counter)  # (row of a query, wrong answer) -> episodes

    @property
    def interval(self) -> Interval:
        """Mean accuracy with its 95 % confidence interval over episodes."""
        return mean_interval(self.accuracies)

    def per_class(self) -> dict[str, tuple[float, int]]:
        """Accuracy and number of queries of each class, hardest first."""
        total: Counter[str] = Counter()
        for (true, _), count in self.confusion.items():
            total[true] += count
        rates = {label: (self.confusion[label, label] / count, count) for label, count in total.items()}
        return dict(sorted(rates.items(), key=lambda item: item[1]))


@dataclass(frozen=True)
class Cell:
    """One number of a table."""

    method: str
    way: int
    shot: int
    results: EpisodeResults

    def as_dict(self) -> dict[str, object]:
        """As it stands in `summary.json`."""
        interval = self.results.interval
        return {
            "method": self.method,
            "way": self.way,
            "shot": self.shot,
            "episodes": len(self.results.accuracies),
            "accuracy": interval.mean,
            "ci95": interval.half_width,
        }


def draw_episodes(
    corpus: Corpus, classes: Iterable[str], way: int, shot: int, queries: int, count: int, stored: Path | None = None
) -> EpisodeList:
    """The first `count` test episodes of a setting; with `stored`, read from there or written there.

    A stored list of other texts or another number of episodes is an error, not silently replaced.
    """
    episodes = EpisodeSampler(corpus, list(classes), way, shot, queries, TEST_SEED).take(count)
    if stored is None:
        return episodes
    if stored.is_file():
        found = EpisodeList.load(stored, corpus)
        if found.hash != episodes.hash:
            raise DataError(f"{stored} holds other episodes than asked for: remove it, or choose another --out")
        return found
    episodes.save(stored)
    return episodes


def encode_classes(
    model: TrainedModel, corpus: Corpus, classes: Iterable[str], *, kind: Inputs = "vectors", show: bool = False
) -> EncodedTexts:
    """All texts of some classes by the model's encoder."""
    indices = corpus.rows_of(classes)
    source = TextSource(corpus.texts, indices, model.encoder, frozen=True, kind=kind, cache=VectorCache(), show=show)
    return source.snapshot(indices)


def run_episodes(
    scorer: Scorer, episodes: EpisodeList, *, description: str = "evaluating", show: bool = False
) -> EpisodeResults:
    """Score every episode."""
    results = EpisodeResults()
    small = not isinstance(scorer, FineTuneScorer)  # heads on encoded texts
    with progress(description, len(episodes), unit="episodes", show=show) as advance, one_thread(small):
        for episode in episodes:
            scores = scorer(episode)
            if not torch.isfinite(scores).all():
                raise DataError(f"{description}: a score is NaN or infinite; are the model's weights damaged?")
            answers = scores.argmax(dim=-1).cpu().numpy()
            labels = np.array(episode.query_labels)
            results.accuracies.append(float((answers == labels).mean()))
            results.confusion.update(
                (episode.classes[label], episode.classes[answer]) for label, answer in zip(labels, answers, strict=True)
            )
            results.asked.update(episode.query_rows)
            results.wrong.update(
                (row, episode.classes[answer])
                for row, label, answer in zip(episode.query_rows, labels, answers, strict=True)
                if label != answer
            )
            advance()
    return results

"""Rows of the paper's table that see all queries of an episode at once, as unlabelled texts.

Each method scores as it always does; then the neighbour graph of the default classifier lets the queries of an episode and
its examples agree with their neighbours. All rows get the same: vectors of the encoder minus the episode's mean, and
scores scaled so that a method is equally sure of its queries, whatever the range of its scores.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dmin.adaptive.unlabelled import soft_labels, softmax
from dmin.data import Episode, EpisodeList
from dmin.evaluation.bench import Bench
from dmin.evaluation.code_digest import module_digest
from dmin.evaluation.comparison_plan import PreparedJob
from dmin.evaluation.protocol import MethodScorer, Scorer
from dmin.methods import FewShotMethod
from dmin.training import Task, TrainConfig

# The mean of the highest probabilities before the neighbours have their say; the same for all rows, not searched.
SURE = 0.7
_MODULES = ("reproduce.paper_unlabelled", "dmin.adaptive.unlabelled", "dmin.adaptive.graph")


class GraphScorer:
    """Probabilities [L, C] of an episode's queries after their neighbours, queries and examples, had their say."""

    def __init__(self, scorer: MethodScorer) -> None:
        self.scorer = scorer

    def __call__(self, episode: Episode) -> Tensor:
        scores = self.scorer(episode).double().numpy()  # [L, C]
        rows = [row for examples in episode.support for row in examples]
        vectors = self.scorer.texts.at(torch.tensor([*rows, *episode.query_rows]))  # [C·K + L, d]
        if not isinstance(vectors, Tensor):
            raise TypeError("a neighbour graph needs one vector per text")
        centred = (vectors - vectors.mean(dim=0)).numpy()
        nodes = centred / np.linalg.norm(centred, axis=1, keepdims=True).clip(min=1e-12)
        classes = np.repeat(np.arange(len(episode.support)), [len(examples) for examples in episode.support])
        targets = np.eye(len(episode.support))[classes]  # [C·K, C]
        return torch.from_numpy(
            soft_labels(nodes[: len(rows)], targets, nodes[len(rows) :], softmax(equally_sure(scores) * scores))
        )


def equally_sure(scores: np.ndarray) -> float:
    """The factor of scores [L, C] at which the mean of the highest probabilities is `SURE`."""
    low, high = 1e-3, 1e4
    for _ in range(40):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if softmax(middle * scores).max(axis=1).mean() > SURE else (middle, high)
    return float((low * high) ** 0.5)


class UnlabelledBench(Bench):
    """A bench whose methods are tested with the graph."""

    def _scorer(
        self, config: TrainConfig, task: Task, method: FewShotMethod, episodes: EpisodeList
    ) -> tuple[Scorer, EpisodeList]:
        scorer, used = super()._scorer(config, task, method, episodes)
        if not isinstance(scorer, MethodScorer):
            raise TypeError(f"{method.traits.name} does not score vectors")
        return GraphScorer(scorer), used


def with_graph(prepared: PreparedJob) -> PreparedJob:
    """The job under a key that also follows the code of the graph."""
    code = "".join(map(module_digest, _MODULES))
    return replace(prepared, key=hashlib.sha256(f"{prepared.key}{code}".encode()).hexdigest()[:16])

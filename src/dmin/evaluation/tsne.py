"""The effect of the memory module on support vectors: the paper's Figure 2 (t-SNE), with silhouettes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from dmin.data import EpisodeSampler
from dmin.encoder import VectorCache
from dmin.errors import ConfigError
from dmin.evaluation.figures import embedding_figure
from dmin.evaluation.runs import open_run
from dmin.methods import RewritesSupport
from dmin.training.sources import TextSource

SETS = 100


@dataclass(frozen=True)
class MemoryEffect:
    """Silhouettes of support vectors before and after DMM: of one support set as a picture, of many as numbers."""

    figure: Figure
    before: float
    after: float
    mean_before: float
    mean_after: float
    wins: int
    sets: int


def memory_effect(run: Path, data: str | None, split: str | None, way: int, shot: int, seed: int) -> MemoryEffect:
    """Draw support sets of test classes and compare them before and after the memory module."""
    from sklearn.manifold import TSNE

    if way < 2 or shot < 2:
        raise ConfigError(f"--way {way} --shot {shot}: the silhouette needs at least 2 classes of 2 texts")
    opened = open_run(run, data=data, split=split)
    model, corpus, method = opened.model, opened.corpus, opened.model.method
    memory_module = method.memory_module() if isinstance(method, RewritesSupport) else None
    if memory_module is None:
        raise ConfigError(f"{run} holds no memory module: train --method dmin with use_memory")
    sampler = EpisodeSampler(corpus, opened.split.test, way, shot, 1, seed)
    sets = [sampler.episode(number) for number in range(SETS)]
    indices = [index for episode in sets for texts in episode.support for index in texts]
    source = TextSource(corpus.texts, indices, model.encoder, frozen=True, cache=VectorCache())
    labels = [number for number in range(way) for _ in range(shot)]
    scores = []
    first: list[Any] = []
    for episode in sets:
        support = source.vectors(torch.tensor(episode.support).flatten())  # [C·K, d]
        with torch.no_grad():
            halves = [half.cpu().numpy() for half in (support, memory_module(support.unsqueeze(1)).squeeze(1))]
        scores.append([silhouette(half, labels) for half in halves])
        first = first or halves
    perplexity = min(30.0, (len(labels) - 1) / 3)
    points = [TSNE(perplexity=perplexity, random_state=seed, init="pca").fit_transform(half) for half in first]
    titles = ("before the memory module", "after the memory module")
    drawn = [(title, point, score) for title, point, score in zip(titles, points, scores[0], strict=True)]
    found = np.array(scores)  # [sets, 2]
    return MemoryEffect(
        figure=embedding_figure(drawn, sets[0].classes, labels),
        before=scores[0][0],
        after=scores[0][1],
        mean_before=float(found[:, 0].mean()),
        mean_after=float(found[:, 1].mean()),
        wins=int((found[:, 1] > found[:, 0]).sum()),
        sets=SETS,
    )


def silhouette(vectors: Any, labels: list[int]) -> float:
    """Mean silhouette by cosine: 1 is tight classes far apart, 0 is classes that overlap."""
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(vectors, labels, metric="cosine"))

"""The effect of the memory module on support vectors (the paper's Figure 2), and a run's results on its own data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from dmin.data import ClassSplit, Corpus, EpisodeSampler, choose_split, load_corpus
from dmin.encoder import VectorCache
from dmin.errors import ConfigError
from dmin.evaluation.figures import embedding_figure
from dmin.evaluation.protocol import EpisodeResults, MethodScorer, draw_episodes, run_episodes
from dmin.methods import DMIN
from dmin.methods.base import Inputs
from dmin.training import TrainConfig, TrainedModel, load_config, load_model
from dmin.training.sources import TextSource

SETS = 100


@dataclass(frozen=True)
class MemoryEffect:
    """Separation of support vectors before and after DMM: one set as a picture, many as numbers."""

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
        raise ConfigError(f"--way {way} --shot {shot}: separation needs at least 2 classes of 2 texts")
    model, corpus, _, classes = open_run(run, data, split)
    method = model.method
    if not isinstance(method, DMIN) or method.memory_routing is None:
        raise ConfigError(f"{run} holds no memory module: train --method dmin with use_memory")
    sampler = EpisodeSampler(corpus, classes.test, way, shot, 1, seed)
    sets = [sampler.episode(number) for number in range(SETS)]
    rows = [row for episode in sets for texts in episode.support for row in texts]
    source = TextSource(corpus, rows, model.encoder, frozen=True, cache=VectorCache())
    labels = [number for number in range(way) for _ in range(shot)]
    scores = []
    first: list[Any] = []
    for episode in sets:
        support = source.vectors(torch.tensor(episode.support).flatten())  # [C·K, d]
        with torch.no_grad():
            halves = [half.cpu().numpy() for half in (support, method.adapt(support.unsqueeze(1)).squeeze(1))]
        scores.append([separation(half, labels) for half in halves])
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


def separation(vectors: Any, labels: list[int]) -> float:
    """Mean silhouette by cosine: 1 is tight classes far apart, 0 is classes that overlap."""
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(vectors, labels, metric="cosine"))


def run_results(run: Path, way: int, shot: int, episodes: int) -> tuple[EpisodeResults, str]:
    """A run's results on test episodes of its own data, and a title."""
    model, corpus, config, classes = open_run(run, None, None)
    chosen = draw_episodes(corpus, classes.test, way, shot, config.queries if config else 10, episodes)
    rows = [row for label in classes.test for row in corpus.by_class[label]]
    kind: Inputs = "tokens" if model.method.inputs == "tokens" else "vectors"
    table = TextSource(corpus, rows, model.encoder, frozen=True, kind=kind, cache=VectorCache()).snapshot(rows)
    title = f"{model.method.title}, {way}-way {shot}-shot on {corpus.name}"
    return run_episodes(MethodScorer(model.method, table), chosen, description=title, show=True), title


def open_run(
    run: Path, data: str | None, split: str | None
) -> tuple[TrainedModel, Corpus, TrainConfig | None, ClassSplit]:
    """Model, corpus, settings and class split of a run, with other data where asked for."""
    stored = run / "config.yaml"
    config = load_config(stored) if stored.is_file() else None
    model = load_model(run)
    own = config is not None and data in (None, config.data)
    name = data or (config.data if config else str(model.info.trained_on.get("data", "starter")))
    if own and config is not None:
        corpus = load_corpus(name, text_column=config.text_column, label_column=config.label_column)
        _, classes = choose_split(corpus, split or config.split, config.split_seed, config.split_sizes)
    else:
        corpus = load_corpus(name)
        _, classes = choose_split(corpus, split)
    return model, corpus, config, classes

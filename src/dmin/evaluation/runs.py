"""A finished run opened again: its model with its own data, and its results there."""

from __future__ import annotations

from pathlib import Path

from dmin.data import ClassSplit, Corpus, choose_split, load_corpus
from dmin.encoder import VectorCache
from dmin.evaluation.protocol import EpisodeResults, MethodScorer, draw_episodes, run_episodes
from dmin.methods.base import Inputs
from dmin.model import TrainedModel, load_model
from dmin.training import TrainConfig, load_config
from dmin.training.sources import TextSource


def run_results(run: Path, way: int, shot: int, episodes: int) -> tuple[EpisodeResults, str]:
    """A run's results on test episodes of its own data, and a title."""
    model, corpus, config, classes = open_run(run, None, None)
    chosen = draw_episodes(corpus, classes.test, way, shot, config.queries if config else 10, episodes)
    rows = corpus.rows_of(classes.test)
    kind: Inputs = "tokens" if model.method.inputs == "tokens" else "vectors"
    table = TextSource(corpus.texts, rows, model.encoder, frozen=True, kind=kind, cache=VectorCache()).snapshot(rows)
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

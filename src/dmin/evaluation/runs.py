"""A finished run opened again: its model with its own data, or with other data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dmin.data import ClassSplit, Corpus, choose_split, load_corpus
from dmin.data.catalog import CATALOG
from dmin.errors import ConfigError
from dmin.evaluation.protocol import EpisodeResults, MethodScorer, draw_episodes, encode_classes, run_episodes
from dmin.files import short
from dmin.model import TrainedModel, load_model
from dmin.training import TrainConfig, load_config, open_corpus
from dmin.training.sources import source_kind


@dataclass(frozen=True)
class OpenRun:
    """The model of a run with the data and the class split to measure it on."""

    folder: Path
    model: TrainedModel
    config: TrainConfig | None  # None where the folder holds a model only
    corpus: Corpus
    split_name: str
    split: ClassSplit
    own_data: bool  # is it the data that the run was trained on?


def open_run(
    run: str | Path,
    *,
    data: str | None = None,
    split: str | None = None,
    split_seed: int | None = None,
    split_sizes: Sequence[int] | None = None,
    text_column: str = "text",
    label_column: str = "label",
    device: str | None = None,
) -> OpenRun:
    """Open a run folder, its `model/`, or a model by hub id.

    On the run's own data, texts, columns and class split are those of the training, unless another split is given. Other
    data is read as it is: what training excluded, for example a test set, is not excluded from it.

    Args:
        run: the folder or hub id.
        data: other data than the run's own.
        split: a class split by name.
        split_seed: draw a class split by this seed instead.
        split_sizes: train, valid and test classes of a drawn split.
        text_column: column of the texts of other data.
        label_column: column of the labels of other data.
        device: of the encoder.
    """
    folder = Path(run)
    if folder.name == "model" and (folder.parent / "config.yaml").is_file():
        folder = folder.parent
    stored = folder / "config.yaml"
    config = load_config(stored) if stored.is_file() else None
    model = load_model(run, device=device)
    own_data = data is None or (config is not None and data == config.data)
    if config is not None and own_data:
        corpus = open_corpus(config)
        if config.all_classes and split is None and split_seed is None:
            raise ConfigError(
                f"{folder} was trained on all its classes: none is left to test on; measure it on labelled texts with "
                f"dmin assess --model {folder} --test FILE, or on the classes of another --data"
            )
        if split is None and split_seed is None:
            split, split_seed = config.split, config.split_seed
        if split is None and split_sizes is None:
            split_sizes = config.split_sizes
    else:
        name = data or _trained_on(model, folder)
        corpus = load_corpus(name, text_column=text_column, label_column=label_column)
    split_name, classes = choose_split(corpus, split, split_seed, split_sizes)
    return OpenRun(folder, model, config, corpus, split_name, classes, own_data)


def _trained_on(model: TrainedModel, folder: Path) -> str:
    """The named data set that a model without a run was trained on; a path or a hub id from a file is not followed."""
    name = str(model.info.trained_on.get("data", "starter"))
    if name not in CATALOG:
        raise ConfigError(f"{folder} was trained on {short(name)}, which is no named data set: give --data")
    return name


def run_results(run: Path, way: int, shot: int, episodes: int) -> tuple[EpisodeResults, str]:
    """A run's results on test episodes of its own data, and a title."""
    opened = open_run(run)
    model, corpus, classes = opened.model, opened.corpus, opened.split.test
    queries = opened.config.queries if opened.config else 10
    chosen = draw_episodes(corpus, classes, way, shot, queries, episodes)
    texts = encode_classes(model, corpus, classes, kind=source_kind(model.method))
    title = f"{model.method.title}, {way}-way {shot}-shot on {corpus.name}"
    return run_episodes(MethodScorer(model.method, texts), chosen, description=title, show=True), title

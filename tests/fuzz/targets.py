"""What is fuzzed: each target has files, and says what they mean or raises a `DminError`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

FIXTURES = Path(__file__).parents[1] / "fixtures" / "version-0.1"
EXAMPLES = {"fruit": ["apple pear", "plum cherry", "melon fig"], "car": ["engine wheel", "brake tyre"]}


@dataclass(frozen=True)
class Target:
    """Something that reads files.

    Args:
        name: what messages call it.
        make: writes the untouched files into a folder.
        read: reads the folder; what it returns is its meaning.
        exact: a changed file must be refused, or mean the same as before: digests guard it.
    """

    name: str
    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    exact: bool = False


def _examples(suffix: str) -> Target:
    def make(folder: Path) -> None:
        rows = [{"text": text, "label": label} for label, texts in EXAMPLES.items() for text in texts]
        path = folder / f"examples{suffix}"
        if suffix == ".parquet":
            parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        elif suffix == ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        elif suffix in (".csv", ".tsv"):
            sign = "," if suffix == ".csv" else "\t"
            path.write_text(f"text{sign}label\n" + "".join(f'"{row["text"]}"{sign}{row["label"]}\n' for row in rows))
        elif suffix == ".json":
            path.write_text(json.dumps(EXAMPLES))
        else:
            path.write_text(
                "".join(f"{label}:\n" + "".join(f"  - {t}\n" for t in ts) for label, ts in EXAMPLES.items())
            )

    def read(folder: Path) -> Any:
        from dmin.data.labelled import read_corpus

        corpus = read_corpus(folder / f"examples{suffix}")
        return corpus.texts, corpus.labels

    return Target(f"examples{suffix}", make, read)


def _splits() -> Target:
    def make(folder: Path) -> None:
        _examples(".jsonl").make(folder)
        (folder / "examples.jsonl").rename(folder / "texts.jsonl")
        (folder / "class_splits.json").write_text(
            json.dumps({"one": {"train": ["fruit"], "valid": [], "test": ["car"]}})
        )

    def read(folder: Path) -> Any:
        from dmin.data.labelled import read_corpus

        return dict(read_corpus(folder / "texts.jsonl").splits)

    return Target("class_splits.json", make, read)


def _settings() -> Target:
    def make(folder: Path) -> None:
        shutil.copy(FIXTURES / "run-dmin" / "config.yaml", folder / "config.yaml")

    def read(folder: Path) -> Any:
        from dmin.training import load_config

        return load_config(folder / "config.yaml")

    return Target("config.yaml", make, read)


def _answers(folder: Path) -> Any:
    from dmin import FewShotClassifier

    loaded = FewShotClassifier.load(folder / "saved", device="cpu")
    return loaded.classes_.tolist(), loaded.decision_function(["apple pear", "engine"]).tolist()


def _classifier() -> Target:
    """A saved classifier that carries its trained model."""

    def make(folder: Path) -> None:
        from dmin import FewShotClassifier

        FewShotClassifier.load(FIXTURES / "classifier-run-dmin", device="cpu").save(folder / "saved")

    return Target("saved classifier", make, _answers, exact=True)


def _old_classifier() -> Target:
    def make(folder: Path) -> None:
        shutil.copytree(FIXTURES / "classifier-run-dmin", folder / "saved")

    return Target("classifier of version 0.1", make, _answers)


def _rows(suffix: str) -> Target:
    """Bulk rows: a row that cannot be used is kept without an answer, so every row has its line in the output."""

    def read(folder: Path) -> Any:
        from dmin.bulk.files import classify_file
        from dmin.bulk.inputs import read_texts
        from dmin.bulk.on_error import OnError

        rows = list(read_texts(folder / f"examples{suffix}", on_error=OnError.keep))
        output = folder / "answers.csv"
        written = classify_file(
            iter(rows), output, lambda texts: [{"label": "x"} for _ in texts], fields=("label", "error")
        )
        if written != len(rows):
            raise AssertionError(f"{written} of {len(rows)} rows were written")
        return len(rows)

    def make(folder: Path) -> None:
        if suffix == ".txt":
            (folder / "examples.txt").write_text("".join(f"{t}\n" for texts in EXAMPLES.values() for t in texts))
        else:
            _examples(suffix).make(folder)

    return Target(f"bulk rows {suffix}", make, read)


def _run_files() -> Target:
    """`metrics.jsonl` and `summary.json` of a run."""

    def make(folder: Path) -> None:
        for name in ("metrics.jsonl", "summary.json"):
            shutil.copy(FIXTURES / "run-dmin" / name, folder / name)

    def read(folder: Path) -> Any:
        from dmin.model.card import read_cells
        from dmin.training.metrics import read_metrics

        return read_metrics(folder / "metrics.jsonl"), read_cells(folder)

    return Target("metrics and summary", make, read)


def _head() -> Target:
    """A model folder in today's format, with a manifest."""

    def make(folder: Path) -> None:
        from dmin.model import load_model, save_model

        save_model(folder / "model", load_model(FIXTURES / "run-dmin", device="cpu"))

    def read(folder: Path) -> Any:
        from dmin.model import load_model

        model = load_model(folder / "model", device="cpu")
        return model.info, [(name, tensor.tolist()) for name, tensor in model.method.state_dict().items()]

    return Target("model folder", make, read, exact=True)


def _old_head() -> Target:
    """A model folder as version 0.1 wrote it: without digests for its JSON, so only tracebacks are looked for."""

    def make(folder: Path) -> None:
        shutil.copytree(FIXTURES / "run-dmin" / "model", folder / "model")

    return Target("model folder of version 0.1", make, _head().read)


def _checkpoint() -> Target:
    def make(folder: Path) -> None:
        import torch

        from dmin.training.checkpoint import CheckpointStore, LoopState

        store = CheckpointStore(folder, lambda _: None)
        store.save_best(1, 2, {"w": torch.ones(3)})
        store.save(
            LoopState(stage=1, step=2, best_step=2, best_score=0.5), {"w": torch.ones(3)}, {"w/step": torch.tensor(2.0)}
        )

    def read(folder: Path) -> Any:
        from dmin.training.checkpoint import CheckpointStore

        found = CheckpointStore(folder, lambda _: None).latest()
        return None if found is None else (found.state, found.weights["w"].tolist(), found.best["w"].tolist())

    return Target("checkpoint", make, read, exact=True)


def _episodes() -> Target:
    def make(folder: Path) -> None:
        (source,) = (FIXTURES / "run-dmin" / "episodes").glob("*4queries*")
        shutil.copy(source, folder / "episodes.json")

    def read(folder: Path) -> Any:
        from dmin.data import EpisodeList
        from dmin.data.labelled import read_corpus

        return EpisodeList.load(folder / "episodes.json", read_corpus(FIXTURES / "words.json"))

    return Target("stored episodes", make, read)


def _old_checkpoint() -> Target:
    def make(folder: Path) -> None:
        for path in (FIXTURES / "run-dmin" / "checkpoints").iterdir():
            shutil.copy(path, folder / path.name)

    def read(folder: Path) -> Any:
        from dmin.training.checkpoint import CheckpointStore

        found = CheckpointStore(folder, lambda _: None).latest()
        return None if found is None else found.state

    return Target("checkpoints of version 0.1", make, read)


TARGETS = [
    *map(_examples, (".jsonl", ".csv", ".tsv", ".yaml", ".json", ".parquet")),
    _splits(),
    _settings(),
    _episodes(),
    _run_files(),
    *map(_rows, (".txt", ".csv", ".jsonl", ".parquet")),
    _classifier(),
    _old_classifier(),
    _head(),
    _old_head(),
    _checkpoint(),
    _old_checkpoint(),
]

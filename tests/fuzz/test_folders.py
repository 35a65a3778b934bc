"""Mutated files of folders: one line that names the wrong thing, or the same answer as before; never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from dmin import FewShotClassifier
from dmin.data import Corpus, EpisodeList, EpisodeSampler
from dmin.data.splits import read_splits
from dmin.errors import DminError
from dmin.files import file_digest
from dmin.model import load_model
from dmin.model.card import model_card, read_cells
from dmin.training import load_config
from dmin.training.checkpoint import CheckpointStore
from dmin.training.metrics import read_metrics
from tests.conftest import word_corpus
from tests.fuzz.mutations import mutate_file

TIMES = 300 if os.environ.get("DMIN_STRESS") else 30  # of each kind of file
FIXTURES = Path(__file__).parents[1] / "fixtures" / "version-0.1"
TEXTS = ["where is my parcel", "money back"]


def answers(folder: Path) -> Any:
    loaded = FewShotClassifier.load(folder, device="cpu")
    return loaded.classes_.tolist(), loaded.decision_function(TEXTS).tolist(), loaded.predict(TEXTS).tolist()


def head(folder: Path) -> Any:
    model = load_model(folder, device="cpu")
    assert model_card(model.info)
    return model.info, {name: tensor.tolist() for name, tensor in model.method.state_dict().items()}


def checkpoint(folder: Path) -> Any:
    found = CheckpointStore(folder / "checkpoints", warn=lambda _: None).latest()
    return None if found is None else found.state


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of today's formats and of version 0.1, and single files."""
    root = tmp_path_factory.mktemp("formats")
    for name in ("classifier-run-dmin", "run-dmin"):
        shutil.copytree(FIXTURES / name, root / f"old-{name}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        FewShotClassifier.load(FIXTURES / "classifier-run-dmin", device="cpu").save(root / "classifier")
    shutil.copytree(root / "classifier" / "model", root / "head")
    corpus = word_corpus()
    EpisodeSampler(corpus, list(corpus.classes), 2, 1, 2).take(4).save(root / "episodes.json")
    names = list(corpus.classes)
    split = {"one": {"train": names[:5], "valid": names[5:7], "test": names[7:]}}
    (root / "class_splits.json").write_text(json.dumps(split))
    return root


def check(path: Path, file: str, read: Callable[[Path], Any], tmp_path: Path, *, bound: bool) -> None:
    """Mutate one file many times; with `bound`, digests bind it, and what is read in spite of a change is the same."""
    target = path / file if path.is_dir() else path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = read(path)
        refused = 0
        for seed in range(TIMES):
            copy = tmp_path / f"{seed}" / path.name
            copy.parent.mkdir(parents=True)
            if path.is_dir():
                shutil.copytree(path, copy)
            else:
                shutil.copyfile(path, copy)
            changed = copy / file if path.is_dir() else copy
            mutate_file(changed, Random(f"{path.name} {file} {seed}"))
            try:
                found = read(copy)
            except DminError as error:
                refused += 1
                assert "\n" not in str(error) and len(str(error)) < 3000, f"seed {seed}"
            else:
                same = file_digest(changed) == file_digest(target)
                assert not bound or same or found == expected, f"seed {seed}: a silent difference"
            shutil.rmtree(tmp_path / f"{seed}")
    assert refused


@pytest.mark.slow
@pytest.mark.parametrize("file", ["classifier.json", "support.safetensors", "manifest.json", "model/head.json",
                                  "model/manifest.json", "model/tokenizer.json", "model/config.json"])  # fmt: skip
def test_a_saved_classifier(places: Path, tmp_path: Path, file: str) -> None:
    check(places / "classifier", file, answers, tmp_path, bound=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "file", ["head.json", "head.safetensors", "manifest.json", "tokenizer_config.json", "model.safetensors"]
)
def test_a_model(places: Path, tmp_path: Path, file: str) -> None:
    check(places / "head", file, head, tmp_path, bound=True)


@pytest.mark.slow
@pytest.mark.parametrize("file", ["classifier.json", "support.safetensors", "model/head.json", "model/config.json"])
def test_a_classifier_of_version_0_1(places: Path, tmp_path: Path, file: str) -> None:
    check(places / "old-classifier-run-dmin", file, answers, tmp_path, bound=False)


@pytest.mark.slow
@pytest.mark.parametrize("file", ["model/head.json", "model/tokenizer.json", "model/tokenizer_config.json"])
def test_a_run_of_version_0_1(places: Path, tmp_path: Path, file: str) -> None:
    check(places / "old-run-dmin", file, head, tmp_path, bound=False)


def test_checkpoints(tmp_path: Path) -> None:
    from dmin.training.checkpoint import LoopState

    store = CheckpointStore(tmp_path / "run" / "checkpoints", warn=lambda _: None)
    store.save_best(2, 10, {"a": torch.ones(3)})
    store.save(LoopState(stage=2, step=20, best_step=10, best_score=0.5), {"a": torch.zeros(3)}, {})
    for path in sorted((tmp_path / "run" / "checkpoints").iterdir()):
        check(tmp_path / "run", f"checkpoints/{path.name}", checkpoint, tmp_path / path.name, bound=True)


def test_checkpoints_of_version_0_1(places: Path, tmp_path: Path) -> None:
    for path in sorted((FIXTURES / "run-dmin" / "checkpoints").glob("stage2-0000020*")):
        single = tmp_path / "single"
        shutil.copytree(FIXTURES / "run-dmin" / "checkpoints", single / "checkpoints")
        for other in (single / "checkpoints").glob("stage2-0000040*"):
            other.unlink()
        check(single, f"checkpoints/{path.name}", checkpoint, tmp_path / "mutated", bound=False)


def episodes_of(corpus: Corpus) -> Callable[[Path], Any]:
    return lambda path: EpisodeList.load(path, corpus).hash


def test_single_files(places: Path, tmp_path: Path) -> None:
    run = places / "old-run-dmin"
    check(places / "class_splits.json", "", read_splits, tmp_path / "splits", bound=False)
    check(places / "episodes.json", "", episodes_of(word_corpus()), tmp_path / "episodes", bound=True)
    check(run / "config.yaml", "", lambda path: load_config(path), tmp_path / "config", bound=False)
    check(run / "metrics.jsonl", "", read_metrics, tmp_path / "metrics", bound=False)
    check(run, "summary.json", read_cells, tmp_path / "summary", bound=False)

"""Training on several sets, with names, varied shapes, and texts left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from dmin.data import VariedSampler
from dmin.errors import ConfigError
from dmin.methods import create
from dmin.model import load_model
from dmin.training import Trainer, load_config
from dmin.training.loop import LoopSettings, make_optimizer
from dmin.training.stage2 import EpisodeBatch
from dmin.training.task import prepare_task

pytestmark = pytest.mark.slow


def write_sets(folder: Path) -> str:
    """Two sets that share a class name."""
    for number, name in enumerate(("one", "two")):
        rows = [f"w{c} {number} {n},class_{c}" for c in range(8) for n in range(8)]
        (folder / f"{name}.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    return f"{folder / 'one.csv'},{folder / 'two.csv'}"


@pytest.fixture
def settings(tmp_path: Path, tiny_encoder_folder: Path) -> dict[str, object]:
    return {
        "data": write_sets(tmp_path), "split_seed": 0, "split_sizes": "10/6/0", "method": "dmin-plus", "way": 3, "shot": 2,
        "queries": 2, "encoder": str(tiny_encoder_folder), "device": "cpu", "stage1.epochs": 1, "stage2.episodes": 6,
        "stage2.validation_episodes": 2, "stage2.ways": [2, 4], "stage2.shots": [1, 3], "stage2.names": 0.5,
        "test_episodes": 0,
    }  # fmt: skip


def test_a_head_on_two_sets(settings: dict[str, object], tmp_path: Path) -> None:
    left_out = tmp_path / "left.jsonl"
    left_out.write_text(json.dumps({"text": "W0  0 0", "label": "class_0"}) + "\n")
    config = load_config(overrides={**settings, "exclude": str(left_out)})
    trainer = Trainer(config, tmp_path / "run", warn=pytest.fail)
    assert isinstance(trainer.task.sampler, VariedSampler)
    assert "w0 0 0" not in trainer.task.corpus.texts and len(trainer.task.corpus.texts) == 127
    trainer.run()
    model = load_model(tmp_path / "run")
    assert len(model.info.base_classes) == 10 and all("/class_" in label for label in model.info.base_classes)
    assert model.info.trained_on["exclude"][0].endswith("/left.jsonl") and model.info.calibration is not None
    again = Trainer(config, tmp_path / "again", warn=pytest.fail).run()
    for name, weight in again.method.state_dict().items():
        assert torch.equal(weight, model.method.state_dict()[name]), name


def test_names_stand_last_in_the_support(settings: dict[str, object]) -> None:
    task = prepare_task(load_config(overrides=settings), pytest.fail)
    episode = task.sampler.episode(0)
    batch = EpisodeBatch([episode], task.base_rows, name_rows=task.name_rows)
    shown = batch.rows[batch.support[0]]  # [C, K + 1]
    assert batch.named and shown.shape == (len(episode.classes), len(episode.support[0]) + 1)
    for number, label in enumerate(episode.classes):
        assert task.texts[int(shown[number, -1])] == task.corpus.name_of(label) == label.split("/")[1].replace("_", " ")
        assert tuple(shown[number, :-1].tolist()) == episode.support[number]
    assert not EpisodeBatch([episode], task.base_rows).named


def test_what_does_not_fit_is_said_before_training(settings: dict[str, object]) -> None:
    for change, message in (
        ({"method": "dmin"}, "dmin cannot learn from class names now and then; dmin-plus can"),
        ({"stage2.ways": [4, 2]}, "from at least 2 classes"),
        ({"stage2.shots": [0]}, "1 text up"),
    ):
        with pytest.raises(ConfigError, match=message):
            prepare_task(load_config(overrides={**settings, **change}), pytest.fail)


def test_gates_and_scales_have_a_rate_of_their_own() -> None:
    method = create("dmin-plus", 6, way=3, shot=1, base_memory=torch.ones(4, 6))
    plain = LoopSettings(1e-4, 1e-5, 0.0, 0.0, 1.0, 0)
    assert {group["lr"] for group in make_optimizer(method, plain).param_groups} == {1e-4}
    own = make_optimizer(method, LoopSettings(1e-4, 1e-5, 0.0, 0.0, 1.0, 0, scalar_learning_rate=1e-2))
    assert {(group["lr"], group["params"][0].ndim == 0) for group in own.param_groups} == {(1e-4, False), (1e-2, True)}

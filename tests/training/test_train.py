"""Training into a run folder, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel

from dmin.encoder import Encoder
from dmin.errors import ConfigError, DminError, ModelError
from dmin.files import write_manifest
from dmin.model import load_model
from dmin.training import Trainer, load_config
from dmin.training.checkpoint import CheckpointStore
from dmin.training.metrics import read_metrics

SMALL: dict[str, Any] = {
    "split_seed": 1, "split_sizes": (5, 2, 2), "way": 3, "shot": 2, "queries": 4, "device": "cpu",
    "stage1.epochs": 2, "stage1.batch": 8, "stage2.episodes": 20, "stage2.validate_every": 10,
    "stage2.validation_episodes": 5, "precision": "float32",
}  # fmt: skip


@pytest.fixture
def settings(words_file: Path, tiny_encoder_folder: Path) -> dict[str, Any]:
    return {**SMALL, "data": str(words_file), "encoder": str(tiny_encoder_folder)}


def silent(message: str) -> None:
    del message


def train(settings: dict[str, Any], out: Path, **options: Any) -> Any:
    return Trainer(load_config(overrides=settings), out, warn=silent, **options).run()


@pytest.mark.parametrize("tune", ["none", "full", "lora"])
def test_a_run_folder_holds_what_it_promises(settings: dict[str, Any], tmp_path: Path, tune: str) -> None:
    out = tmp_path / "run"
    model = train({**settings, "tune": tune}, out)
    assert {"config.yaml", "metrics.jsonl", "checkpoints", "model"} <= {path.name for path in out.iterdir()}
    assert load_config(out / "config.yaml").tune == tune
    metrics = read_metrics(out / "metrics.jsonl")
    assert {line["stage"] for line in metrics} == {1, 2} and any("loss" in line for line in metrics)
    AutoModel.from_pretrained(out / "model")
    head = json.loads((out / "model" / "head.json").read_text())
    assert head["format"] == 2 and len(head["base_classes"]) == 5 and head["calibration"] is None
    loaded = load_model(out)
    assert loaded.info == model.info
    width = 48 if tune == "none" else 24  # two layers of a frozen encoder
    support, query = torch.randn(3, 2, width), torch.randn(4, width)
    with torch.no_grad():
        assert torch.equal(loaded.method(support, query), model.method(support, query))
    texts = ["guitar song", "boat and tide"]
    assert torch.allclose(*(torch.from_numpy(m.encoder.encode(texts)) for m in (loaded, model)), atol=1e-6)
    newest = CheckpointStore(out / "checkpoints", silent, load_config(out / "config.yaml").digest).latest()
    assert newest is not None
    learned = {name for name in newest.weights if name.startswith("encoder.")}
    start = Encoder(settings["encoder"], device="cpu").network.backbone.state_dict()
    if tune == "full":
        moved = [name for name in learned if not torch.equal(newest.weights[name], start[name.split(".", 2)[2]])]
        assert len(moved) > 10
    else:
        assert all("lora" in name for name in learned) and bool(learned) == (tune == "lora")


@pytest.mark.slow
def test_the_same_seed_gives_the_same_weights(settings: dict[str, Any], tmp_path: Path) -> None:
    runs = [train({**settings, "seed": seed}, tmp_path / str(number)) for number, seed in enumerate((3, 3, 4))]
    states = [run.method.state_dict() for run in runs]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not torch.equal(states[0]["base_memory"], states[2]["base_memory"])


def test_a_run_that_stops_between_two_lines_of_metrics_writes_the_same_lines(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line averages ten updates; a checkpoint after the seventh of them holds the seven."""
    settings = {**settings, "stage2.validate_every": 7}
    train(settings, tmp_path / "whole")
    save = CheckpointStore.save

    def stop_after_seven(store: CheckpointStore, state: Any, *rest: Any) -> None:
        save(store, state, *rest)
        if (state.stage, state.step) == (2, 7):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "save", stop_after_seven)
        with pytest.raises(KeyboardInterrupt):
            train(settings, tmp_path / "broken")
    train(settings, tmp_path / "broken", resume=True)
    whole, broken = (
        [{**line, "time": 0} for line in read_metrics(tmp_path / name / "metrics.jsonl")]
        for name in ("whole", "broken")
    )
    assert broken == whole


def test_training_leaves_global_random_state_alone(settings: dict[str, Any], tmp_path: Path) -> None:
    state = torch.get_rng_state()
    train({**settings, "tune": "full"}, tmp_path / "run")
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base_classes": 6}, "base_classes 6: the split has 5 training classes"),
        ({"base_classes": ["appel"]}, "unknown base class 'appel'"),
        ({"way": 6}, "6-way episodes need 6 classes, but there are 5"),
        ({"shot": 10, "queries": 10}, r"fewer than 10 \+ 10 texts"),
        ({"method": "dmiin"}, "unknown method 'dmiin': did you mean 'dmin'"),
        ({"method": "dmin", "options": {"capsule": 2}}, "did you mean 'capsules'"),
        ({"data": "starte"}, "unknown data set"),
        ({"split_sizes": (5, 1, 2)}, "validation needs 2 classes"),
        ({"encoder": "/nowhere"}, "no such encoder folder"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_written(
    settings: dict[str, Any], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(DminError, match=message):
        train({**settings, **change}, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_precision_that_breaks_is_refused_before_anything_is_written(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dmin.training.tuning.breaks_on_bf16", lambda device: True)
    with pytest.raises(ConfigError, match="use precision=float32"):
        train({**settings, "tune": "full", "precision": "bf16"}, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_with_a_run_is_not_overwritten_by_accident(settings: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(settings, out)
    before = (out / "model" / "head.safetensors").read_bytes()
    with pytest.raises(ConfigError, match="already holds a run: add --resume"):
        train(settings, out)
    assert (out / "model" / "head.safetensors").read_bytes() == before
    train({**settings, "seed": 5}, out, overwrite=True)
    assert (out / "model" / "head.safetensors").read_bytes() != before
    with pytest.raises(ConfigError, match="another configuration .seed: 5 -> 0"):
        train(settings, out, resume=True)
    with pytest.raises(ConfigError, match="nothing to resume"):
        train(settings, tmp_path / "none", resume=True)


def test_a_head_is_refused_with_another_encoder(settings: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(settings, out)
    other = AutoModel.from_pretrained(out / "model")
    with torch.no_grad():
        next(other.parameters()).add_(0.5)
    other.save_pretrained(out / "model")
    write_manifest(out / "model", "model")
    with pytest.raises(ModelError, match="another encoder"):
        load_model(out)


@pytest.mark.parametrize("name", ["head.safetensors", "head.json", "model.safetensors"])
def test_a_damaged_model_is_refused_by_name(settings: dict[str, Any], tmp_path: Path, name: str) -> None:
    out = tmp_path / "run"
    train(settings, out)
    path = out / "model" / name
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ModelError, match=f"{name}|cannot load the encoder"):
        load_model(out)
    path.unlink()
    with pytest.raises(ModelError):
        load_model(out)


def test_without_episodes_and_epochs_the_start_is_kept(settings: dict[str, Any], tmp_path: Path) -> None:
    model = train({**settings, "stage1.epochs": 0, "stage2.episodes": 0}, tmp_path / "run")
    assert model.method.base_memory.norm(dim=1).std() < 1e-4


def test_a_loss_of_nan_stops_with_a_hint(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="stage 2: the loss of update .* is NaN or infinite; lower the learning rate"):
        train({**settings, "method": "prototypical", "stage2.learning_rate": 1e30}, tmp_path / "run")
    assert list((tmp_path / "run" / "checkpoints").glob("stage2-*")) and not (tmp_path / "run" / "model").exists()


def test_tensorboard_writes_events(settings: dict[str, Any], tmp_path: Path) -> None:
    train({**settings, "tensorboard": True}, tmp_path / "run")
    assert list((tmp_path / "run").rglob("events.out.tfevents.*"))

"""Heads on the vectors of encoders without torch: training works, tuning is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmin import FewShotClassifier
from dmin.encoder import open_encoder
from dmin.errors import ConfigError, ModelError
from dmin.files import read_json
from dmin.model import load_model
from dmin.training import Trainer, load_config
from dmin.training.task import open_encoder as encoder_of

NOTHING = {"method": "dmin-plus", "tune": "none"}


@pytest.fixture
def settings(words_file: Path) -> dict[str, Any]:
    return {
        "data": str(words_file), "split_seed": 1, "split_sizes": (5, 2, 2), "way": 2, "shot": 2, "queries": 4,
        "device": "cpu", "stage1.epochs": 2, "stage1.batch": 8, "stage2.episodes": 20, "stage2.validate_every": 10,
        "stage2.validation_episodes": 5,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bge-small", "static", "bge-small+static"])
def test_a_head_trains_on_its_vectors(settings: dict[str, Any], tmp_path: Path, name: str) -> None:
    """The model folder records the encoder by name, version and digest, and opens again."""
    out = tmp_path / "run"
    model = Trainer(load_config(overrides={**settings, **NOTHING, "encoder": name}), out).run()
    stored = read_json(out / "model" / "encoder.json")
    assert stored["name"] == name and stored["fingerprint"] == model.encoder.fingerprint
    again = load_model(out)
    assert again.encoder.name == name and again.info.dim == open_encoder(name).width
    texts = ["apple pear plum", "car engine wheel"]
    assert np.array_equal(again.encoder.encode(texts), open_encoder(name).encode(texts))
    classifier = FewShotClassifier(out, device="cpu").fit({"fruit": ["apple pear"], "car": ["engine wheel"]})
    assert classifier.predict(texts).tolist() == ["fruit", "car"]
    classifier.save(tmp_path / "saved")
    assert FewShotClassifier.load(tmp_path / "saved").predict(texts).tolist() == ["fruit", "car"]


def test_another_encoder_beside_the_head_is_refused(settings: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "run"
    Trainer(load_config(overrides={**settings, **NOTHING, "encoder": "static"}), out).run()
    place = out / "model" / "encoder.json"
    place.write_text(place.read_text().replace('"static"', '"bge-small"'))
    with pytest.raises(ModelError):
        load_model(out)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"encoder": "bge-small", "tune": "full"},
            "tune full: the encoder 'bge-small' has no weights that torch loads",
        ),
        ({"encoder": "static", "tune": "lora"}, "tune lora: the encoder 'static'"),
        ({"encoder": "bge-small+minilm", "tune": "full"}, "tune full: the encoder 'bge-small.minilm'"),
        ({"encoder": "bge-small", "method": "ataml"}, "method ataml: the encoder 'bge-small'"),
        ({"encoder": "bge-small", "pooling": "layers"}, "'layers' needs torch"),
    ],
)
def test_what_needs_torch_is_refused(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        encoder_of(load_config(overrides={"method": "dmin", **changes}))


def test_settings_of_version_0_1_mean_the_encoder_of_then() -> None:
    """Their "default" is not today's: a resumed run goes on with the encoder that it began with."""
    assert load_config(overrides={"encoder": "default"}).encoder == load_config().encoder == "minilm"

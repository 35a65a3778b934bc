"""A classifier on encoders by name: fit, answer, save and load."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmin import FewShotClassifier
from dmin.encoder import open_encoder
from dmin.errors import ConfigError
from dmin.files import read_json, write_manifest

EXAMPLES = {"refund": ["I want my money back", "please return what I paid"], "parcel": ["where is my order"]}
QUERIES = ["can I get a refund", "my parcel has not arrived"]


@pytest.mark.parametrize("name", ["bge-small", "static", "bge-small+static"])
def test_by_name(name: str, tmp_path: Path) -> None:
    classifier = FewShotClassifier("nearest", encoder=name).fit(EXAMPLES)
    assert classifier.predict(QUERIES).tolist() == ["refund", "parcel"]
    assert classifier.encoder_ is not None and classifier.encoder_.name == name
    assert np.array_equal(classifier.encoder_.encode(QUERIES), open_encoder(name).encode(QUERIES))
    classifier.save(tmp_path / "saved")
    again = FewShotClassifier.load(tmp_path / "saved")
    assert np.array_equal(again.decision_function(QUERIES), classifier.decision_function(QUERIES))


def test_default_is_saved_by_its_own_name(tmp_path: Path) -> None:
    FewShotClassifier("nearest", encoder="default").fit(EXAMPLES).save(tmp_path / "saved")
    place = tmp_path / "saved" / "classifier.json"
    assert read_json(place)["encoder_name"] == "bge-small"
    assert FewShotClassifier.load(tmp_path / "saved").encoder_.name == "bge-small"


def test_default_of_a_classifier_of_before_is_minilm(tmp_path: Path) -> None:
    FewShotClassifier("nearest", encoder="minilm", device="cpu").fit(EXAMPLES).save(tmp_path / "saved")
    place = tmp_path / "saved" / "classifier.json"
    place.write_text(place.read_text().replace('"encoder_name": "minilm"', '"encoder_name": "default"'))
    write_manifest(tmp_path / "saved", "classifier")
    assert read_json(place)["encoder_name"] == "default"
    again = FewShotClassifier.load(tmp_path / "saved", device="cpu")
    assert again.encoder_.name == "minilm" and again.predict(QUERIES).tolist() == ["refund", "parcel"]


def test_a_backend_that_it_does_not_have() -> None:
    with pytest.raises(ConfigError, match="computes on ONNX Runtime"):
        FewShotClassifier("nearest", encoder="bge-small", backend="onnx-int8").fit(EXAMPLES)

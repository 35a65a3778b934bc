"""A classifier on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmin import FewShotClassifier
from dmin.errors import ConfigError, DataError, ModelError, StorageError
from tests.classifier.test_few_shot import EXAMPLES, letters, quick

TEXTS = ["some text", "money back", "rain"]


@pytest.mark.parametrize("labels", [str, hash])
def test_everything_comes_back(tmp_path: Path, labels: Any) -> None:
    examples = {labels(label): texts for label, texts in EXAMPLES.items()}
    classifier = quick(reject="auto", unknown_label="?", descriptions={next(iter(examples)): "give the money back"})
    classifier.fit(examples).save(tmp_path / "saved")
    loaded = FewShotClassifier.load(tmp_path / "saved", encoder=letters)
    assert loaded.examples_ == classifier.examples_ and loaded.threshold_ == classifier.threshold_
    assert np.array_equal(loaded.decision_function(TEXTS), classifier.decision_function(TEXTS))
    assert loaded.predict(TEXTS).tolist() == classifier.predict(TEXTS).tolist()
    loaded.add_class(labels("new"), ["brand new"]).save(tmp_path / "saved")  # over the old one
    assert len(FewShotClassifier.load(tmp_path / "saved", encoder=letters).classes_) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saved"]


def test_with_the_embedded_encoder_nothing_is_encoded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = FewShotClassifier(device="cpu").fit(EXAMPLES)
    classifier.save(tmp_path / "saved")
    expected = classifier.decision_function(TEXTS)
    loaded = FewShotClassifier.load(tmp_path / "saved", device="cpu")
    assert np.allclose(loaded.decision_function(TEXTS), expected, atol=1e-6)
    assert not (tmp_path / "saved" / "model").exists()
    assert all(path.suffix in (".json", ".safetensors", ".md") for path in (tmp_path / "saved").iterdir())


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="holds no saved classifier"):
        FewShotClassifier.load(tmp_path)
    classifier = quick().fit(EXAMPLES)
    classifier.save(tmp_path / "saved")
    with pytest.raises(ConfigError, match="give the same encoder"):
        FewShotClassifier.load(tmp_path / "saved")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious.txt").write_text("mine")
    with pytest.raises(StorageError, match="holds something else"):
        classifier.save(tmp_path / "other")
    assert (tmp_path / "other" / "precious.txt").read_text() == "mine"
    with pytest.raises(DataError, match="only strings and numbers"):
        quick().fit({("a",): ["x"], ("b",): ["y"]}).save(tmp_path / "tuples")
    support = tmp_path / "saved" / "support.safetensors"
    support.write_bytes(support.read_bytes()[:-5])
    with pytest.raises(ModelError, match="support.safetensors"):
        FewShotClassifier.load(tmp_path / "saved", encoder=letters)

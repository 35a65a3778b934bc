"""A classifier on disk."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmin import FewShotClassifier
from dmin.classifier.scorers import head_digest
from dmin.errors import ConfigError, DataError, ModelError, StorageError
from dmin.files import read_tensors, write_manifest, write_tensors
from tests.classifier.common import EXAMPLES, letters, quick

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


def test_a_folder_that_holds_no_classifier_or_a_damaged_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="holds no saved classifier"):
        FewShotClassifier.load(tmp_path)
    quick().fit(EXAMPLES).save(tmp_path / "saved")
    with pytest.raises(ConfigError, match="give the same encoder"):
        FewShotClassifier.load(tmp_path / "saved")
    support = tmp_path / "saved" / "support.safetensors"
    support.write_bytes(support.read_bytes()[:-5])
    with pytest.raises(ModelError, match="support.safetensors"):
        FewShotClassifier.load(tmp_path / "saved", encoder=letters)


def test_saving_leaves_other_files_alone_and_names_labels_that_json_cannot_hold(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious.txt").write_text("mine")
    with pytest.raises(StorageError, match="holds something else"):
        quick().fit(EXAMPLES).save(tmp_path / "other")
    assert (tmp_path / "other" / "precious.txt").read_text() == "mine"
    with pytest.raises(DataError, match="only strings and numbers"):
        quick().fit({("a",): ["x"], ("b",): ["y"]}).save(tmp_path / "tuples")


def test_settings_of_every_kind_come_back(tmp_path: Path) -> None:
    classifier = quick(reject={"refund": 0.9}, unknown_label="?").fit(EXAMPLES)
    classifier.save(tmp_path / "saved")
    loaded = FewShotClassifier.load(tmp_path / "saved", encoder=letters)
    assert loaded.reject == {"refund": 0.9} and loaded.predict(TEXTS).tolist() == classifier.predict(TEXTS).tolist()
    FewShotClassifier("nearest", device="cpu").fit(EXAMPLES).save(tmp_path / "nearest")
    assert FewShotClassifier.load(tmp_path / "nearest", device="cpu").model == "nearest"


def test_another_shipped_head_takes_the_same_examples(tmp_path: Path) -> None:
    """A package with a newer head reads what an older one saved: the vectors stay, what the head makes of them does not."""
    classifier = FewShotClassifier(device="cpu").fit(EXAMPLES)
    classifier.save(tmp_path / "saved")
    path = tmp_path / "saved" / "classifier.json"
    path.write_text(
        path.read_text().replace(f'"head": "{head_digest(classifier.state_.model.method)}"', '"head": "older"')
    )
    tensors, _ = read_tensors(tmp_path / "saved" / "support.safetensors")
    spoiled = {name: tensor * 0 if name.startswith("prepared") else tensor for name, tensor in tensors.items()}
    write_tensors(tmp_path / "saved" / "support.safetensors", spoiled)
    write_manifest(tmp_path / "saved", "classifier")
    loaded = FewShotClassifier.load(tmp_path / "saved", device="cpu")
    assert np.allclose(loaded.decision_function(TEXTS), classifier.decision_function(TEXTS), atol=1e-6)


def test_the_card_says_what_it_is(tmp_path: Path) -> None:
    quick(reject=0.2).fit({"a|b": ["x"], "c": ["y", "z"]}).save(tmp_path / "saved")
    card = (tmp_path / "saved" / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: dmin") and "| a\\|b | 1 |" in card and "| c | 2 |" in card
    assert "reject=0.2" in card


def test_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub cannot be here: its client is replaced, the folder that it would send is looked at."""
    sent: dict[str, Any] = {}

    class Hub:
        def create_repo(self, name: str, private: bool, exist_ok: bool) -> str:
            return f"https://hub/{name}"

        def upload_folder(self, folder_path: Path, repo_id: str, commit_message: str) -> None:
            shutil.copytree(folder_path, tmp_path / "hub")
            sent["name"] = repo_id

    classifier = quick().fit(EXAMPLES)
    monkeypatch.setattr("dmin.hub.hub_reachable", lambda: False)
    with pytest.raises(ModelError, match="cannot be reached from here: 'me/inbox' was not sent"):
        classifier.push_to_hub("me/inbox")
    with pytest.raises(ModelError, match="cannot be reached"):
        FewShotClassifier.load("me/inbox")
    monkeypatch.setattr("dmin.hub.hub_reachable", lambda: True)
    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    assert classifier.push_to_hub("me/inbox") == "https://hub/me/inbox" and sent == {"name": "me/inbox"}
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, local_files_only: str(tmp_path / "hub"))
    loaded = FewShotClassifier.load("me/inbox", encoder=letters)
    assert loaded.examples_ == classifier.examples_

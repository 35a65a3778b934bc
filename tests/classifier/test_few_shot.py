"""The classifier an application holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmin import FewShotClassifier
from dmin.errors import DataError, UnknownNameError
from dmin.training import Trainer, load_config

EXAMPLES = {
    "refund": ["I want my money back", "please return what I paid", "when do I get reimbursed"],
    "parcel": ["where is my order", "my package has not arrived"],
    "weather": ["will it rain tomorrow"],
}


@pytest.fixture(scope="module")
def fitted() -> FewShotClassifier:
    return FewShotClassifier(device="cpu").fit(EXAMPLES)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DMIN head on the embedded encoder, hardly trained."""
    out = tmp_path_factory.mktemp("runs") / "run"
    overrides: dict[str, Any] = {
        "data": "starter", "base_classes": 8, "stage1.epochs": 1, "stage2.episodes": 4, "stage2.validation_episodes": 3,
        "device": "cpu",
    }  # fmt: skip
    Trainer(load_config(overrides=overrides), out, warn=pytest.fail).run()
    return out


def test_predicts_at_once(fitted: FewShotClassifier) -> None:
    texts = ["give me my money back", "my package is late", "is it going to rain"]
    assert fitted.predict(texts) == ["refund", "parcel", "weather"]
    assert fitted.decision_function(texts).shape == (3, 3)
    assert fitted.predict([]) == []


def test_both_forms_of_fit_agree(fitted: FewShotClassifier) -> None:
    pairs = [(text, label) for label, texts in EXAMPLES.items() for text in texts]
    other = FewShotClassifier(device="cpu").fit([text for text, _ in pairs], [label for _, label in pairs])
    texts = ["hello", "money please"]
    assert other.classes_ == fitted.classes_ == list(EXAMPLES)
    assert np.allclose(other.decision_function(texts), fitted.decision_function(texts), atol=1e-6)


def test_classes_come_and_go() -> None:
    classifier = FewShotClassifier(device="cpu").fit(EXAMPLES)
    before = classifier.decision_function(["play a song"])
    classifier.add_class("music", ["play some jazz", "put on a song"])
    assert classifier.predict(["play a song"]) == ["music"]
    assert np.allclose(classifier.decision_function(["play a song"])[:, :3], before, atol=1e-6)
    classifier.remove_class("music")
    assert classifier.classes_ == list(EXAMPLES)
    assert np.allclose(classifier.decision_function(["play a song"]), before, atol=1e-6)


@pytest.mark.parametrize("trained", [False, True])
def test_shares_add_up_to_the_score(trained: bool, run_folder: Path) -> None:
    classifier = FewShotClassifier(run_folder if trained else "default", device="cpu").fit(EXAMPLES)
    for text in ("where has my order gone", "I demand a refund", "umbrella or not"):
        found = classifier.explain(text)
        assert found.label == classifier.predict([text])[0]
        assert sum(share for _, share in found.examples) == pytest.approx(found.score, abs=1e-5)
        assert found.score == pytest.approx(classifier.decision_function([text]).max(), abs=1e-5)
        assert {example for example, _ in found.examples} == set(EXAMPLES[found.label])
        assert found.runner_up in set(EXAMPLES) - {found.label}


def test_blocks_of_queries_change_nothing(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dmin.classifier import few_shot

    classifier = FewShotClassifier(run_folder, device="cpu").fit(EXAMPLES)
    texts = ["one text", "another text", "a third one"]
    whole = classifier.decision_function(texts)
    monkeypatch.setattr(few_shot, "_BLOCK", 1)
    assert np.allclose(classifier.decision_function(texts), whole, atol=1e-6)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda c: c.fit({}), DataError, "no classes"),
        (lambda c: c.fit({"a": []}), DataError, "'a' has no example"),
        (lambda c: c.fit({"a": "text"}), TypeError, "not one string"),
        (lambda c: c.fit({"a": ["x", " "]}), DataError, "text 1 is empty"),
        (lambda c: c.fit(["x"]), TypeError, "need labels"),
        (lambda c: c.fit(["x"], ["a", "b"]), DataError, "1 texts but 2 labels"),
        (lambda c: c.fit({"a": ["x"]}, ["a"]), TypeError, "not both"),
        (lambda c: c.add_class("refund", ["x"]), DataError, "there already"),
        (lambda c: c.remove_class("refnd"), UnknownNameError, "did you mean 'refund'"),
        (lambda c: c.predict([None]), TypeError, "text 0 is None"),
        (lambda c: c.explain(""), DataError, "text 0 is empty"),
    ],
)
def test_mistakes_change_nothing(fitted: FewShotClassifier, act: Any, error: type[Exception], message: str) -> None:
    before = fitted.decision_function(["hello"])
    with pytest.raises(error, match=message):
        act(fitted)
    assert np.array_equal(fitted.decision_function(["hello"]), before)


def test_nothing_known_yet() -> None:
    with pytest.raises(DataError, match="call fit"):
        FewShotClassifier(device="cpu").predict(["hello"])

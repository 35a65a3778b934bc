"""The light runtime: no torch and nothing else that is heavy, the same answers on numpy and torch, a carried encoder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dmin.encoder.carriers as carriers
from dmin import FewShotClassifier
from dmin.errors import ConfigError, ModelError
from tests.classifier.common import letters

HEAVY = ("torch", "transformers", "sklearn", "scipy", "pandas", "matplotlib", "accelerate", "huggingface_hub")
EXAMPLES = {
    "refund": ["I want my money back", "please return what I paid", "when do I get reimbursed"],
    "parcel": ["where is my order", "my package has not arrived"],
    "weather": ["will it rain tomorrow", "is it sunny outside"],
}
TEXTS = ["give me my money", "has the parcel been sent", "snow on the weekend", "a poem about cats"]
LIFE = """
import sys, warnings
for name in {heavy}:
    sys.modules[name] = None  # an import of it fails
from dmin import FewShotClassifier
classifier = FewShotClassifier({options}reject="auto").fit({examples})
texts = {texts}
classifier.predict(texts), classifier.predict_proba(texts), classifier.answer(texts, k=2), classifier.score(texts, texts)
classifier.add_class("music", ["play some jazz"]).add_examples("music", ["put on a song"])
assert classifier.predict(["play a song"]).tolist() == ["music"]
str(classifier.explain(texts[0])), str(classifier.check()), classifier.threshold_, repr(classifier)
classifier.remove_example("music", "put on a song").remove_class("music").refit()
if not {options!r}.startswith("'nearest'"):
    classifier.adapt(texts * 3).refit()
classifier.set_params(reject=0.5).save({folder!r})
again = FewShotClassifier.load({folder!r})
assert (again.decision_function(texts) == classifier.decision_function(texts)).all() and again.get_params()["reject"] == 0.5
print(again.predict(texts).tolist())
"""


def run(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("options", ["", "'nearest', encoder='bge-small', "])
def test_a_whole_life_without_heavy_packages(options: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "saved")
    printed = run(LIFE.format(heavy=HEAVY, options=options, examples=EXAMPLES, texts=TEXTS, folder=folder))
    on_torch = FewShotClassifier.load(folder, backend="torch")
    assert isinstance(on_torch.state_.knowledge.classes[0].vectors, torch.Tensor)
    assert printed.strip() == str(on_torch.predict(TEXTS).tolist())


def test_the_command_imports_nothing_heavy(tmp_path: Path) -> None:
    path = tmp_path / "examples.json"
    path.write_text(json.dumps(EXAMPLES))
    code = (
        f"import sys\nfor name in {HEAVY}: sys.modules[name] = None\nfrom dmin.cli.app import run\n"
        f"assert run(['classify', '--examples', {str(path)!r}, '--reject', 'auto', 'give me my money']) == 0\n"
        f"assert run(['classify', '--examples', {str(path)!r}, '--explain', 'give me my money']) == 0\n"
    )
    assert run(code).startswith("refund\t")


@pytest.mark.parametrize(
    ("model", "reject"), [("adaptive", None), ("adaptive", "auto"), ("nearest", None), ("nearest", "auto")]
)
def test_numpy_and_torch_agree(model: str, reject: Any, tmp_path: Path) -> None:
    pair = [
        FewShotClassifier(model, encoder=letters, reject=reject, backend=backend).fit(EXAMPLES)
        for backend in ("auto", "torch")
    ]
    light, heavy = pair
    assert isinstance(light.state_.knowledge.classes[0].vectors, np.ndarray)
    assert isinstance(heavy.state_.knowledge.classes[0].vectors, torch.Tensor)

    def same() -> None:
        assert np.allclose(light.decision_function(TEXTS), heavy.decision_function(TEXTS), atol=1e-5)
        assert np.allclose(light.predict_proba(TEXTS), heavy.predict_proba(TEXTS), atol=1e-5)
        assert light.predict(TEXTS).tolist() == heavy.predict(TEXTS).tolist()
        assert light.threshold_ == pytest.approx(heavy.threshold_, abs=1e-5)
        one, two = light.explain(TEXTS[0]), heavy.explain(TEXTS[0])
        found = [{share.text: (share.share, share.without) for share in told.examples} for told in (one, two)]
        assert found[0].keys() == found[1].keys()
        for text, values in found[0].items():
            assert found[1][text] == pytest.approx(values, abs=1e-5, nan_ok=True)

    same()
    for classifier in pair:
        classifier.add_class("music", ["play some jazz", "a song"]).add_examples("parcel", ["track it"])
    same()
    assert str(light.check()) == str(heavy.check())
    for classifier in pair:
        classifier.remove_example("refund", EXAMPLES["refund"][0]).remove_class("weather").refit()
    same()
    if model == "adaptive":
        for classifier in pair:
            classifier.adapt(["money please", "the order", "a tune", "paid twice"] * 3)
        same()
    heavy.save(tmp_path / "saved")
    loaded = FewShotClassifier.load(tmp_path / "saved", encoder=letters, backend="auto")
    assert np.allclose(loaded.decision_function(TEXTS), heavy.decision_function(TEXTS), atol=1e-5)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
import sys
sys.modules["torch"] = None
from dmin import FewShotClassifier
for options in ({"model": "nearest"}, {"model": "dmin-plus"}, {"encoder": "minilm"}, {"encoder": "some/encoder"}):
    try:
        FewShotClassifier(**options).fit({"a": ["x"], "b": ["y"]})
    except Exception as error:
        print(type(error).__name__, error)
from dmin.cli.app import run
assert run(["compare", "--data", "starter"]) == 2
"""
    lines = run(code).splitlines()
    assert len(lines) == 4
    for line in lines:
        assert (
            line.startswith("ConfigError") and "needs torch, which is not installed: pip install 'dmin[train]'" in line
        )


# A saved classifier that carries its encoder


def test_a_carried_encoder_needs_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = FewShotClassifier().fit(EXAMPLES)
    classifier.save(tmp_path / "saved", with_encoder=True)
    files = json.loads((tmp_path / "saved" / "manifest.json").read_text())["files"]
    assert {"encoder/encoder.json", "encoder/tokenizer.json", "encoder/weights.onnx"} <= set(files)

    def gone(name: str) -> Path:
        raise ModelError(f"{name} is not installed")

    monkeypatch.setattr(carriers, "carried_folder", gone)
    monkeypatch.setattr("dmin.encoder.opening.carried_folder", gone)
    loaded = FewShotClassifier.load(tmp_path / "saved")
    assert np.array_equal(loaded.decision_function(TEXTS), classifier.decision_function(TEXTS))
    assert loaded.encoder_ is not None and loaded.encoder_.name == "bge-small"
    loaded.add_class("music", ["play some jazz"]).save(tmp_path / "saved", with_encoder=True)  # in its own place
    assert FewShotClassifier.load(tmp_path / "saved").predict(["play a song"]).tolist() == ["music"]
    loaded.save(tmp_path / "by-name")
    assert not (tmp_path / "by-name" / "encoder").exists()
    with pytest.raises(ModelError, match="is not installed"):
        FewShotClassifier.load(tmp_path / "by-name")


def test_a_damaged_or_exchanged_encoder_is_refused(tmp_path: Path) -> None:
    FewShotClassifier().fit(EXAMPLES).save(tmp_path / "saved", with_encoder=True)
    weights = tmp_path / "saved" / "encoder" / "weights.onnx"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ModelError, match=r"weights\.onnx is damaged, or belongs to another folder"):
        FewShotClassifier.load(tmp_path / "saved")


@pytest.mark.parametrize("encoder", ["static", "minilm", "bge-small+static"])
def test_every_kind_of_encoder_can_be_carried(encoder: str, tmp_path: Path) -> None:
    classifier = FewShotClassifier(encoder=encoder, device="cpu" if encoder == "minilm" else None).fit(EXAMPLES)
    classifier.save(tmp_path / "saved", with_encoder=True)
    loaded = FewShotClassifier.load(tmp_path / "saved", device="cpu" if encoder == "minilm" else None)
    assert loaded.encoder_ is not None and loaded.encoder_.name == encoder
    assert np.allclose(loaded.decision_function(TEXTS), classifier.decision_function(TEXTS), atol=1e-5)


def test_an_encoder_that_cannot_be_carried(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the vectors come from elsewhere"):
        FewShotClassifier(encoder=letters).fit(EXAMPLES).save(tmp_path / "saved", with_encoder=True)
    assert not (tmp_path / "saved").exists()

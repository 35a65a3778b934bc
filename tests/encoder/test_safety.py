"""Encoders from folders that somebody else made: no code, no network, no other folder, no traceback; and copies."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from dmin import FewShotClassifier
from dmin.encoder import Encoder, VectorCache
from dmin.encoder.onnx import check_export
from dmin.errors import ModelError
from dmin.files import file_digest
from tests.classifier.common import EXAMPLES


@pytest.fixture
def folder(tiny_encoder_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_encoder_folder, tmp_path / "encoder"))


def change(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_code_of_a_model_is_neither_run_nor_asked_for(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*args: object) -> str:
        raise AssertionError("a person was asked")

    monkeypatch.setattr("builtins.input", ask)
    (folder / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Config: pass\nclass Network: pass\n")
    change(
        folder / "config.json",
        model_type="unheard-of",
        auto_map={"AutoConfig": "code.Config", "AutoModel": "code.Network"},
    )
    with pytest.raises(ModelError, match="cannot load the encoder"):
        Encoder(str(folder))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["../other/model.safetensors", "/etc/model.safetensors", "deep/model.safetensors", 5])
def test_an_index_that_points_elsewhere_is_refused(folder: Path, name: object) -> None:
    shutil.copytree(folder, folder.parent / "other")
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match="which is not a safetensors file of its folder"):
        Encoder(str(folder))


def test_an_adapter_that_names_another_model_is_refused(folder: Path) -> None:
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "someone/else"}))
    with pytest.raises(ModelError, match="holds an adapter for another model"):
        Encoder(str(folder))


@pytest.mark.parametrize("values", [
    {"max_position_embeddings": "many"}, {"hidden_size": -3}, {"hidden_size": "x"}, {"vocab_size": 5}, {"model_type": 7},
    {"num_attention_heads": 0},
])  # fmt: skip
def test_a_damaged_configuration_is_named(folder: Path, values: dict[str, object]) -> None:
    change(folder / "config.json", **values)
    with pytest.raises(ModelError, match="the encoder"):
        Encoder(str(folder), device="cpu").encode(["where is my parcel"])


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"model": 5}', "[" * 100_000, "null"])
def test_a_damaged_tokenizer_is_named(folder: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError, match="the encoder"):
        Encoder(str(folder), device="cpu").encode(["where is my parcel"])


def test_weights_that_are_not_finite_are_refused(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.0.output.dense.bias"][3] = float("nan")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="holds NaN or infinity"):
        Encoder(str(folder))


def test_a_damaged_export_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "encoder.onnx"
    path.write_bytes(b"content")
    check_export(path)  # version 0.1 wrote no digest
    path.with_name("encoder.onnx.sha256").write_text(file_digest(path) + "\n")
    check_export(path)
    path.write_bytes(b"cOntent")
    with pytest.raises(ModelError, match="is damaged: it does not match encoder.onnx.sha256"):
        check_export(path)


@pytest.mark.parametrize("pooling", ["cls", "mean", "layers"])
def test_an_encoder_that_was_used_can_be_pickled(tiny_encoder_folder: Path, pooling: str) -> None:
    encoder = Encoder(str(tiny_encoder_folder), pooling=pooling, device="cpu")
    expected = encoder.encode(["where is my parcel", "rain"])
    for again in (encoder, pickle.loads(pickle.dumps(encoder))):  # noqa: S301 (made here)
        assert np.array_equal(again.encode(["where is my parcel", "rain"]), expected)
        assert again.fingerprint == encoder.fingerprint
    classifier = FewShotClassifier(encoder=encoder).fit(EXAMPLES)
    answers = classifier.decision_function(["money"])
    other = pickle.loads(pickle.dumps(classifier))  # noqa: S301 (made here)
    assert np.array_equal(other.decision_function(["money"]), answers)


def test_the_cache_removes_only_what_it_wrote(tiny_encoder: Encoder, tmp_path: Path) -> None:
    root = tmp_path / "cache"
    cache = VectorCache(root)
    cache.encode(tiny_encoder, ["one", "two"])
    shelf = next(root.iterdir())
    own = set(root.rglob("*"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / ("a" * 32 + ".safetensors")).write_text("mine")
    foreign = [
        root / "notes.txt",
        root / "photos" / "a.jpg",
        shelf / "mine.safetensors",
        root / "models" / "x.safetensors",
    ]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    (root / ("b" * 24 + "-64")).symlink_to(outside)
    assert cache.size() == sum(path.stat().st_size for path in own if path.is_file())
    cache.encode(tiny_encoder, ["one", "three"])  # a file of somebody else among the shards is not read as damaged
    VectorCache(root, limit=1000)._trim()
    assert cache.clear() >= 0 and cache.size() == 0
    assert all(path.read_text() == "mine" for path in foreign)
    assert (outside / ("a" * 32 + ".safetensors")).read_text() == "mine"
    assert not [path for path in own if path.is_file() and path.exists()]

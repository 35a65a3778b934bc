"""The encoder on ONNX Runtime, against torch."""

from __future__ import annotations

import importlib.util
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from dmin import FewShotClassifier
from dmin.cli.app import app
from dmin.encoder import Encoder, VectorCache, onnx
from dmin.encoder.backends import FILES
from dmin.encoder.encoder import exported_file
from dmin.errors import ConfigError, ModelError

pytestmark = pytest.mark.slow

TEXTS = ["where is my parcel", "I want my money back right now, this is the third time I ask", "hello", "ok then"] * 3


@pytest.fixture(scope="module")
def exported(tiny_encoder_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder with both exports beside its weights."""
    folder = tmp_path_factory.mktemp("exported") / "tiny"
    shutil.copytree(tiny_encoder_folder, folder)
    encoder = Encoder(str(folder), pooling="mean", device="cpu")
    for backend, name in FILES.items():
        cosine = onnx.export_onnx(encoder.network, folder / name, encoder.fingerprint, int8=backend == "onnx-int8")
        assert 0.9 < cosine <= 1.0001
    assert sorted(path.name for path in folder.glob("*.onnx")) == ["encoder-int8.onnx", "encoder.onnx"]
    assert not list(folder.glob(".*"))  # nothing half-made is left
    return folder


def encoder_of(folder: Path, backend: str, **settings: int) -> Encoder:
    return Encoder(str(folder), pooling="mean", device="cpu", backend=backend, **settings)


def test_float32_gives_the_same_vectors(exported: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is there: nothing is exported
        found = encoder_of(exported, "onnx", batch_size=5).encode(TEXTS)
    expected = encoder_of(exported, "torch").encode(TEXTS)
    assert found.dtype == np.float32 and np.allclose(found, expected, atol=1e-5)


def test_float32_of_two_layers(tiny_encoder_folder: Path, tmp_path: Path) -> None:
    encoder = Encoder(str(tiny_encoder_folder), pooling="layers", device="cpu")
    onnx.export_onnx(encoder.network, tmp_path / "two.onnx", encoder.fingerprint)
    network = onnx.OnnxNetwork(tmp_path / "two.onnx", encoder.network.pad, encoder.fingerprint)
    found = network(encoder.tokenize(TEXTS))
    assert found.shape == (len(TEXTS), encoder.width) and np.allclose(found, encoder.encode(TEXTS), atol=1e-5)


def test_int8_is_near_and_not_the_same(exported: Path) -> None:
    found, expected = (encoder_of(exported, backend).encode(TEXTS) for backend in ("onnx-int8", "torch"))
    cosines = (found * expected).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > 0.97 and not np.allclose(found, expected, atol=1e-5)


def test_vectors_of_backends_are_cached_apart(exported: Path, tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    exact, rough = (cache.encode(encoder_of(exported, backend), TEXTS) for backend in ("torch", "onnx-int8"))
    assert not np.array_equal(exact, rough)
    assert np.array_equal(cache.encode(encoder_of(exported, "torch"), TEXTS), exact)
    assert encoder_of(exported, "onnx").fingerprint == encoder_of(exported, "torch").fingerprint


def test_exported_once_into_the_cache(tiny_encoder_folder: Path) -> None:
    with pytest.warns(UserWarning, match="exporting the encoder for backend 'onnx'"):
        first = encoder_of(tiny_encoder_folder, "onnx").encode(TEXTS)
    again = encoder_of(tiny_encoder_folder, "onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(again.encode(TEXTS), first)
    assert not list(tiny_encoder_folder.glob("*.onnx")) and exported_file(again).is_file()
    assert VectorCache().size() > 1000 and VectorCache().clear() > 1000


def test_an_export_of_other_weights_is_refused(exported: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tuned"
    shutil.copytree(exported, folder)
    tuned = encoder_of(folder, "torch")
    next(tuned.network.parameters()).data.add_(0.1)
    tuned.save(str(folder))
    with pytest.raises(ModelError, match="exported from another encoder"):
        encoder_of(folder, "onnx").encode(TEXTS)


def test_a_broken_file_says_what_to_do(exported: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(exported, folder)
    content = (folder / "encoder.onnx").read_bytes()
    (folder / "encoder.onnx").write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelError, match="export it again"):
        encoder_of(folder, "onnx").encode(TEXTS)


def test_the_check_at_export_can_fail(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = encoder_of(exported, "torch")
    right = onnx.OnnxNetwork(exported / "encoder.onnx", encoder.network.pad, encoder.fingerprint)
    for int8 in (True, False):
        with pytest.raises(ModelError, match="differs from torch|differ too much"):
            onnx._compare(encoder.network, lambda rows: right(rows) + 9.0 * np.eye(24)[: len(rows)], int8)  # type: ignore[arg-type]
    monkeypatch.setattr(onnx, "LARGEST_DIFFERENCE", -1.0)
    with pytest.raises(ModelError, match="differs"):
        onnx.export_onnx(encoder.network, tmp_path / "encoder.onnx", encoder.fingerprint)
    assert not list(tmp_path.iterdir())


def test_a_network_that_cannot_be_exported_is_named(exported: Path, tmp_path: Path) -> None:
    class Odd(nn.Module):
        config = encoder_of(exported, "torch").network.backbone.config

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1))

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> None:
            raise RuntimeError(f"odd {int(input_ids.sum())}")

    encoder = encoder_of(exported, "torch")
    encoder.network.backbone = Odd()
    with pytest.raises(ModelError, match="cannot be exported to ONNX"):
        onnx.export_onnx(encoder.network, tmp_path / "encoder.onnx", "none")


def test_wrong_backend_device_or_missing_package_is_a_config_error(
    exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="did you mean 'onnx'|onnx-int8"):
        encoder_of(exported, "onx")
    with pytest.raises(ConfigError, match="computes on the CPU"):
        Encoder(str(exported), device="cuda", backend="onnx")
    with pytest.raises(ConfigError, match="brings its own vectors"):
        FewShotClassifier(encoder="precomputed", backend="onnx").fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.raises(ConfigError, match="backend"):
        FewShotClassifier(backend="tensorflow").fit({"a": ["x"], "b": ["y"]})
    real = importlib.util.find_spec
    monkeypatch.setattr("dmin.encoder.backends.find_spec", lambda name: None if name == "onnxruntime" else real(name))
    with pytest.raises(ConfigError, match=r"pip install 'dmin\[onnx\]'"):
        encoder_of(exported, "onnx")


def test_classifier_saves_and_loads_with_its_backend(exported: Path, tmp_path: Path) -> None:
    examples = {"refund": ["my money back", "return what I paid"], "parcel": ["where is my parcel", "package late"]}
    answers = {}
    for backend in ("torch", "onnx"):
        classifier = FewShotClassifier(encoder=str(exported), backend=backend, device="cpu").fit(examples)
        answers[backend] = classifier.decision_function(TEXTS)
    assert np.allclose(answers["onnx"], answers["torch"], atol=1e-5)
    classifier.save(tmp_path / "kept")
    again = FewShotClassifier.load(tmp_path / "kept", encoder=str(exported))
    assert again.backend == "onnx" and again.encoder_ is not None and again.encoder_.backend == "onnx"
    assert np.allclose(again.decision_function(TEXTS), answers["onnx"], atol=1e-6)


def test_command_exports_and_says_where(tiny_encoder_folder: Path, tmp_path: Path, words_file: Path) -> None:
    run = tmp_path / "run"
    small = ["--set", "stage1.epochs=1", "--set", "stage2.episodes=2", "--set", "stage2.validation_episodes=2"]
    runner = CliRunner()
    trained = runner.invoke(
        app, ["train", "--data", str(words_file), "--encoder", str(tiny_encoder_folder), "--way", "2", "--out", str(run),
              "--set", "split_sizes=[5,2,2]", "--set", "test_episodes=2", "--set", "queries=2", *small],
    )  # fmt: skip
    assert trained.exit_code == 0, trained.output
    done = runner.invoke(app, ["model", "export", str(run)])
    assert done.exit_code == 0 and "not needed" not in done.output, done.output
    assert "--onnx is not needed" in runner.invoke(app, ["model", "export", str(run), "--onnx"]).output
    assert (run / "model" / "encoder.onnx").is_file() and "cosine with torch at least 1.0000" in done.output

"""What version 0.1 saved is loaded, with a warning, and answers as it did then."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from dmin import FewShotClassifier
from dmin.cli.app import run
from dmin.files import MANIFEST, read_tensors
from dmin.model import load_model

FIXTURES = Path(__file__).parent / "fixtures" / "version-0.1"
ANSWERS = json.loads((FIXTURES / "answers.json").read_text())
RUNS = ("run-dmin", "run-dmin-plus")


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of everything in the current folder; the runs' encoder, named `encoder`, is the one in their model."""
    shutil.copytree(FIXTURES, tmp_path / "old")
    shutil.copytree(FIXTURES / "run-dmin" / "model", tmp_path / "old" / "encoder")
    for name in ("head.json", "head.safetensors"):
        (tmp_path / "old" / "encoder" / name).unlink()
    monkeypatch.chdir(tmp_path / "old")
    return tmp_path / "old"


def check_answers(classifier: FewShotClassifier, name: str) -> None:
    expected = ANSWERS[name]
    assert classifier.predict(expected["texts"]).tolist() == expected["predict"]
    assert np.allclose(classifier.decision_function(expected["texts"]), expected["decision"], atol=1e-5)
    assert np.allclose(classifier.predict_proba(expected["texts"]), expected["proba"], atol=1e-4)
    assert classifier.threshold_ == pytest.approx(expected["threshold"], abs=1e-5)


@pytest.mark.parametrize("name", list(ANSWERS))
def test_a_classifier_answers_the_same_and_is_protected_once_it_is_saved_again(old: Path, name: str) -> None:
    with pytest.warns(UserWarning, match="was saved by version 0.1, without digests of its files"):
        classifier = FewShotClassifier.load(old / f"classifier-{name}", device="cpu")
    check_answers(classifier, name)
    (old / f"classifier-{name}" / "mine.txt").write_text("keep me")
    classifier.save(old / f"classifier-{name}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = FewShotClassifier.load(old / f"classifier-{name}", device="cpu")
    check_answers(again, name)
    assert (old / f"classifier-{name}" / MANIFEST).is_file()
    assert (old / f"classifier-{name}" / "mine.txt").read_text() == "keep me"


@pytest.mark.parametrize("name", RUNS)
def test_a_run_loads_with_a_warning(old: Path, name: str) -> None:
    with pytest.warns(UserWarning, match="was saved by version 0.1"):
        model = load_model(old / name, device="cpu")
    assert f"run-{model.info.method}" == name and len(model.info.base_classes) == 4


@pytest.mark.parametrize("name", RUNS)
def test_evaluate_gives_the_digits_of_then(old: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The stored episodes are read, the same numbers are found and printed."""
    before = json.loads((old / name / "summary.json").read_text())
    stored = {path.name: path.read_bytes() for path in (old / name / "episodes").iterdir()}
    assert run(["evaluate", name, "--way", "2", "--shot", "1,2", "--episodes", "20"]) == 0
    printed = capsys.readouterr().out
    assert json.loads((old / name / "summary.json").read_text()) == before
    for cell in before["cells"]:
        assert f"{100 * cell['accuracy']:.1f}" in printed
    assert {path.name: path.read_bytes() for path in (old / name / "episodes").iterdir()} == stored


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("finished", [True, False])
def test_checkpoints_are_resumed_to_the_same_weights(
    old: Path, name: str, finished: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(old / name / "model")
    if not finished:
        for path in (old / name / "checkpoints").glob("stage2-0000040*"):
            path.unlink()
    assert run(["train", "--resume", "--out", name]) == 0
    assert "was written by version 0.1" in capsys.readouterr().err
    expected, _ = read_tensors(FIXTURES / name / "model" / "head.safetensors")
    found, _ = read_tensors(old / name / "model" / "head.safetensors")
    assert set(found) == set(expected)
    for key, tensor in expected.items():
        assert np.allclose(found[key], tensor, atol=1e-6), key
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_model(old / name, device="cpu")  # has its manifest now

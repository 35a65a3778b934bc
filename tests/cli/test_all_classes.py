"""`dmin train --all-classes` and the commands that use such a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmin.cli.app import run
from dmin.cli.train import default_folder
from dmin.training import load_config

SETTINGS = """
--all-classes --way 3 --shot 2 --queries 4 --device cpu --episodes 10 --set stage1.batch=8 --set stage2.validate_every=10
--set stage2.validation_episodes=5
"""


def test_train_classify_assess(
    words_file: Path,
    tiny_encoder_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    data = ["--data", str(words_file), "--encoder", str(tiny_encoder_folder), "--out", "mine"]
    assert run(["train", *data, *SETTINGS.split()]) == 0
    output = capsys.readouterr().out
    assert "9 classes, 126 texts to learn from, 18 held out" in output
    assert "DMIN-plus: " in output and "logistic regression on the same vectors: " in output
    assert 'next: dmin classify --model mine "a text"' in output
    summary = json.loads((tmp_path / "mine" / "summary.json").read_text())
    assert summary["split"] == "all-classes" and summary["cells"] == [] and summary["held_out"]["texts"] == 18
    assert all(0 <= row["accuracy"] <= 1 for row in summary["held_out"]["rows"])

    assert run(["classify", "--model", "mine", "doctor nurse pill 0", "wave shore sand 0"]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == ["health", "sea"]

    examples = tmp_path / "more.yaml"
    examples.write_text("jobs: [hire apply interview, career job offer]\n")
    assert (
        run(["classify", "--model", "mine", "--examples", str(examples), "hire apply interview", "wave shore sand 0"])
        == 0
    )
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == ["jobs", "sea"]

    assert run(["assess", "--model", "mine", "--test", str(words_file)]) == 0
    output = capsys.readouterr().out
    assert output.startswith("9 classes, 0 examples, 144 texts") and "harmonic mean" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["evaluate", "mine"],
            "trained on all its classes: none is left to test on; measure it on labelled texts with",
        ),
        (["classify", "--model", "mine", "--reject", "auto", "--unknown", "sea", "a"], "--unknown 'sea': a class has"),
        (["train", "--all-classes", "--split-seed", "1"], "all_classes holds no class back: leave out split_seed=1"),
        (["train", "--all-classes", "--method", "hatt"], "a hatt model keeps no classes of its own"),
        (
            ["classify", "a"],
            "--examples is needed: a file of examples for each class (a model trained with --all-classes",
        ),
    ],
)
def test_errors_say_the_way_out(
    words_file: Path,
    tiny_encoder_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if "mine" in arguments:
        data = ["--data", str(words_file), "--encoder", str(tiny_encoder_folder), "--out", "mine"]
        assert run(["train", *data, *SETTINGS.replace("--episodes 10", "--set stage2.episodes=0").split()]) == 0
        capsys.readouterr()
    assert run(arguments) == 2
    assert message in capsys.readouterr().err


def test_the_folder_is_named_after_the_data() -> None:
    config = load_config(overrides={"data": "tickets.csv", "all_classes": True, "tune": "full"})
    assert default_folder(config) == Path("runs/tickets-all-classes-dmin-plus-full")

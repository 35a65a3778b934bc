"""The commands, run as a user runs them: what they print and write, and how they report errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from dmin.cli.app import app, run
from tests.training.runs import SETTINGS


def test_a_classifier_imports_only_what_it_uses() -> None:
    heavy = (
        "transformers",
        "accelerate",
        "matplotlib",
        "onnxruntime",
        "ray",
        "datasets",
        "peft",
        "sentence_transformers",
    )
    program = f"import sys, dmin\ndmin.FewShotClassifier()\nprint([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_needs_neither_torch_nor_transformers() -> None:
    program = (
        "import sys\nfrom dmin.cli.app import run\nrun(['--help'])\n"
        "print([m for m in ('torch', 'transformers', 'matplotlib', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")
    for verb in ("demo", "train", "evaluate", "data"):
        assert verb in done.stdout


def commands() -> Iterator[tuple[str, ...]]:
    """All commands and subcommands."""
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        yield from [(name, below) for below in getattr(command, "commands", {})] or [(name,)]


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_help_teaches_within_80_columns(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each help has examples, and every option in an example exists."""
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*command, "--help"]) == 0
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    about, options = output.split("Examples:\n")[0], output.split("Options:\n")[1]
    examples = output.split("Examples:\n")[1].split("\n\n")[0].replace("\\\n", "")
    assert len(about.split("\n\n")[1].strip()) > 30
    own = [line for line in examples.splitlines() if f"dmin {' '.join(command)}" in line]
    assert own
    for option in re.findall(r"--[a-z][a-z0-9-]*", " ".join(line.split("dmin ", 1)[1] for line in own)):
        assert re.search(rf"{option}\b", options), option


def test_the_list_of_commands_is_not_cut(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for group in ([], ["data"], ["model"], ["figure"]):
        assert run([*group, "--help"]) == 0
        assert "..." not in capsys.readouterr().out.split("Commands:\n")[1]


def test_help_shows_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["classify", "--help"]) == 0
    assert "{label: [texts]}" in capsys.readouterr().out


def test_version_and_nothing_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("dmin 0.")
    assert run([]) == 0
    assert "Usage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "no such command 'trian': did you mean 'train'?"),
        (["train", "--wya", "3"], "no such option '--wya': did you mean '--way'?"),
        (["train", "--way", "many"], "'--way'"),
        (["train", "--data", "bankin77"], "did you mean 'banking77'"),
        (["train", "--data", "gone.csv"], "no such file: gone.csv"),
        (["train", "--split", "novel41"], "did you mean 'novel14'"),
        (["train", "--method", "dmim"], "did you mean 'dmin'"),
        (["train", "--set", "stage2.epsodes=3"], "did you mean 'stage2.episodes'"),
        (["train", "--set", "nonsense"], "KEY=VALUE is needed"),
        (["train", "--set", "way={5"], "the value is not valid YAML"),
        (["train", "--config", "gone.yaml"], "no such configuration file"),
        (["train", "--way", "41"], "41-way episodes need 41 classes, but there are 40"),
        (["train", "--resume"], "--resume needs --out"),
        (["train", "--resume", "--out", "nowhere"], "nothing to resume"),
        (["train", "--encoder", "/nowhere"], "no such encoder folder"),
        (["evaluate"], "give the folder of a run (a classifier on your own files is measured by: dmin assess)"),
        (["evaluate", "nowhere"], "no such run or model folder"),
        (["evaluate", ".", "--way", "a"], "numbers separated by commas"),
        (["evaluate", ".", "--shot", "0"], "must be at least 1"),
        (["data", "info", "startr"], "did you mean 'starter'"),
        (["data", "check", "gone.csv"], "no such file"),
        (["data", "check", "starter", "--shot", "0"], "'--shot'"),
    ],
)
def test_an_error_is_one_line_and_code_two(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 2
    errors = capsys.readouterr().err
    assert message in errors and errors.startswith("error: ") and errors.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_train_then_evaluate(
    words_file: Path, tiny_encoder_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    arguments = ["train", "--data", str(words_file), "--encoder", str(tiny_encoder_folder), "--out", str(out)]
    more = ["--episodes", "20", "--way", "2", "--set", "test_episodes=7"]
    assert run([*arguments, *SETTINGS.split(), *more]) == 0
    output = capsys.readouterr().out
    assert "nearest prototype" in output and "2-way 2-shot" in output and "±" in output
    summary = json.loads((out / "summary.json").read_text())
    assert [cell["episodes"] for cell in summary["cells"]] == [7, 7]
    assert run(["evaluate", str(out), "--way", "2", "--shot", "1,3", "--episodes", "5", "--queries", "4"]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert {(cell["method"], cell["shot"]) for cell in summary["cells"]} == {
        (method, shot) for method in ("dmin", "nearest") for shot in (1, 3)
    }
    assert (out / "confusion-2way-3shot.png").is_file()
    assert run(["evaluate", str(out), "--data", "starter", "--way", "5", "--shot", "1", "--episodes", "3"]) == 0
    assert json.loads((out / "starter" / "summary.json").read_text())["data"] == "starter"
    assert json.loads((out / "summary.json").read_text())["data"] == "words"
    capsys.readouterr()
    assert run([*arguments, *SETTINGS.split()]) == 2
    assert "already holds a run" in capsys.readouterr().err


def test_show_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--show-settings", "--way", "7", "--set", "stage1.epochs=2"]) == 0
    output = capsys.readouterr().out
    assert "way: 7" in output and "epochs: 2" in output


def test_a_method_tied_to_its_shot_is_evaluated_there(
    words_file: Path, tiny_encoder_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    arguments = ["train", "--data", str(words_file), "--encoder", str(tiny_encoder_folder), "--out", str(out)]
    more = ["--episodes", "4", "--way", "2", "--method", "hatt", "--shot", "3"]
    assert run([*arguments, *SETTINGS.split(), *more]) == 0
    assert run(["evaluate", str(out), "--way", "2", "--episodes", "3", "--queries", "4"]) == 0
    assert {cell["shot"] for cell in json.loads((out / "summary.json").read_text())["cells"]} == {3}


def test_a_run_from_a_file_of_settings_is_resumed_by_the_same_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "my.yaml"
    given.write_text("method: dmin\ndata: starter\n")
    for name, more in (("searched", []), ("plain", ["--plain"])):
        folder = tmp_path / name
        folder.mkdir()
        assert run(["train", "--config", str(given), "--show-settings", *more]) == 0
        (folder / "config.yaml").write_text(capsys.readouterr().out)
        assert run(["train", "--config", str(given), "--resume", "--out", str(folder), "--show-settings"]) == 0
        assert capsys.readouterr().out == (folder / "config.yaml").read_text()

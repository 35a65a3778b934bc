"""`dmin evaluate --examples`, `dmin model` and `dmin data check` on a user's own files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from dmin.cli.app import run
from dmin.model import load_model
from tests.training.runs import SETTINGS

pytestmark = pytest.mark.slow

EXAMPLES = {
    "refund": ["I want my money back", "please return what I paid", "give me a refund"],
    "parcel": ["where is my order", "my package is late", "the parcel never came"],
}
TEST = [
    {"text": "return my money", "label": "refund"},
    {"text": "the package has not arrived", "label": "parcel"},
    {"text": "who won the chess game", "label": "chess"},
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "examples.json").write_text(json.dumps(EXAMPLES))
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TEST))
    return str(tmp_path / "examples.json"), str(tmp_path / "test.jsonl")


def test_own_files(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples, test = files
    (tmp_path / "outside.txt").write_text("the capital of France\nhow tall is the tower\n")
    out = tmp_path / "out"
    arguments = ["evaluate", "--examples", examples, "--test", test, "--out", str(out)]
    assert run([*arguments, "--outside", str(tmp_path / "outside.txt"), "--reject", "auto"]) == 0
    output = capsys.readouterr().out
    for part in ("accuracy 100.0 %", "macro-F1", "logistic regression", "calibration error", "3 texts belong nowhere"):
        assert part in output
    stored = json.loads((out / "assessment.json").read_text())
    assert stored["separation"]["strangers"] == 3 and stored["refused_of_strangers"] == 1.0
    assert {path.name for path in out.iterdir()} == {
        "assessment.json", "reliability.png", "confusion.png", "refusal.png",
    }  # fmt: skip
    assert run([*arguments, "--keep-base", "--no-names"]) == 0
    assert "texts of base classes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--way", "5"], "--way belong to episodes"),
        (["--reject", "often"], "a number between -1 and 1, or auto"),
        (["--test", "gone.jsonl"], "no such file: gone.jsonl"),
    ],
)
def test_mistakes(files: tuple[str, str], more: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "--examples", files[0], "--test", files[1], *more]) == 2
    assert message in capsys.readouterr().err


def test_options_of_the_other_kind_are_refused(capsys: pytest.CaptureFixture[str], files: tuple[str, str]) -> None:
    assert run(["evaluate", "somewhere", "--reject", "auto"]) == 2
    assert "belong to --examples" in capsys.readouterr().err
    assert run(["evaluate", "--examples", files[0]]) == 2
    assert "belong together" in capsys.readouterr().err


def test_data_check_by_meaning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "intents.json"
    path.write_text(json.dumps({**EXAMPLES, "hours": ["when do you open", "where is my parcel, my order"]}))
    assert run(["data", "check", str(path)]) == 0
    output = capsys.readouterr().out
    assert "by meaning: 3 classes, 8 examples" in output and "'where is my parcel, my order' is in hours" in output
    assert run(["data", "check", str(path), "--no-meaning"]) == 0
    assert "by meaning" not in capsys.readouterr().out


def test_model_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str], words_file: Path) -> None:
    assert run(["model", "info"]) == 0
    output = capsys.readouterr().out
    assert "method: dmin-plus" in output and "calibration, name weight" in output
    out = tmp_path / "run"
    arguments = [
        "train",
        "--data",
        str(words_file),
        "--out",
        str(out),
        *SETTINGS.split(),
        "--episodes",
        "4",
        "--way",
        "2",
    ]
    assert run([*arguments, "--method", "dmin-plus", "--set", "stage2.names=0.5", "--set", "test_episodes=5"]) == 0
    (tmp_path / "notes.md").write_text("## Limits\n\nEnglish only.\n")
    head = tmp_path / "head"
    assert run(["model", "head", str(out), "--out", str(head), "--notes", str(tmp_path / "notes.md")]) == 0
    assert {path.name for path in head.iterdir()} == {"head.json", "head.safetensors", "README.md"}
    sizes = [(folder / "head.safetensors").stat().st_size for folder in (head, out / "model")]
    assert sizes[0] < 0.7 * sizes[1]  # in half precision
    kept, whole = (load_model(folder, device="cpu").method for folder in (head, out))
    for name, tensor in kept.state_dict().items():
        assert tensor.dtype == torch.float32 and torch.allclose(tensor, whole.state_dict()[name], rtol=1e-3, atol=1e-4)
    card = (head / "README.md").read_text()
    assert "English only." in card and "DMIN-plus" in card and "± " in card
    examples = tmp_path / "e.json"
    examples.write_text(json.dumps(EXAMPLES))
    assert run(["classify", "--examples", str(examples), "--model", str(head), "give my money back"]) == 0
    assert run(["model", "card", str(out)]) == 0 and (out / "model" / "README.md").is_file()
    capsys.readouterr()
    assert run(["model", "push", str(out), "nowhere"]) == 2
    assert "owner/name is needed" in capsys.readouterr().err

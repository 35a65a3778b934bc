"""`dmin model`: info, head, card, push."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from dmin.cli.app import run
from dmin.files import check_manifest
from dmin.model import load_model
from tests.training.runs import SETTINGS

pytestmark = pytest.mark.slow

EXAMPLES = {
    "refund": ["I want my money back", "please return what I paid", "give me a refund"],
    "parcel": ["where is my order", "my package is late", "the parcel never came"],
}


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
    assert {path.name for path in head.iterdir()} == {"head.json", "head.safetensors", "README.md", "manifest.json"}
    check_manifest(head, "model", ("head.json", "head.safetensors"))
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
    check_manifest(
        out / "model", "model", ("head.json", "head.safetensors", "config.json")
    )  # a card changes nothing of it
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("mine")
    assert run(["model", "head", str(out), "--out", str(tmp_path / "mine")]) == 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["precious.txt"]
    capsys.readouterr()
    assert run(["model", "push", str(out), "nowhere"]) == 2
    assert "owner/name is needed" in capsys.readouterr().err

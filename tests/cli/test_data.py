"""`dmin data`: list, info, check, cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmin.cli.app import run

EXAMPLES = {
    "refund": ["I want my money back", "please return what I paid", "give me a refund"],
    "parcel": ["where is my order", "my package is late", "the parcel never came"],
}


def test_list_info_check_and_cache(capsys: pytest.CaptureFixture[str], words_file: Path) -> None:
    assert run(["data", "list"]) == 0
    assert "banking77" in capsys.readouterr().out
    assert run(["data", "info", "starter"]) == 0
    assert "split novel14: 40/12/14 classes (default)" in capsys.readouterr().out
    words_file.write_text(words_file.read_text() + "boat sail,sea\nboat sail,sky\nBoat  sail,sea\nlonely,rare\n")
    assert run(["data", "check", str(words_file)]) == 0
    output = capsys.readouterr().out
    assert "duplicates: 1" in output and "texts under two labels: 1" in output and "rare (1)" in output
    assert run(["data", "cache"]) == 0 and run(["data", "cache", "--clear"]) == 0
    assert "MB freed" in capsys.readouterr().out


def test_a_file_of_examples_is_not_measured_by_episodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "intents.json"
    path.write_text(json.dumps(EXAMPLES))
    assert run(["data", "check", str(path), "--no-meaning"]) == 0
    output = capsys.readouterr().out
    assert "episodes" not in output and "no problems found" in output
    assert run(["data", "check", str(path), "--no-meaning", "--shot", "5"]) == 0
    assert "classes with fewer than 5 + 10 texts, too few for episodes: 2" in capsys.readouterr().out


def test_check_by_meaning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "intents.json"
    path.write_text(json.dumps({**EXAMPLES, "hours": ["when do you open", "where is my parcel, my order"]}))
    assert run(["data", "check", str(path)]) == 0
    output = capsys.readouterr().out
    assert "by meaning: 3 classes, 8 examples" in output and "'where is my parcel, my order' is in hours" in output
    assert run(["data", "check", str(path), "--no-meaning"]) == 0
    assert "by meaning" not in capsys.readouterr().out

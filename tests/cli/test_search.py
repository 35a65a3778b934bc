"""`dmin search`, and a comparison that takes what it chose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from dmin.cli.app import run
from tests.cli.test_research import SMALL

pytestmark = pytest.mark.slow


@pytest.fixture
def common(words_file: Path, tiny_encoder_folder: Path) -> list[str]:
    return ["--data", str(words_file), "--methods", "prototypical,nearest", *SMALL.split(), "--encoder",
            str(tiny_encoder_folder)]  # fmt: skip


def test_a_comparison_takes_what_a_search_chose(
    common: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "search"
    assert run(["search", "--trials", "2", *common, "--out", str(out)]) == 0
    output = capsys.readouterr().out
    assert "Chosen on validation classes" in output and "prototypical" in output and str(out) in output
    chosen = yaml.safe_load((out / "settings.yaml").read_text())
    assert set(chosen["methods"]) == {"prototypical", "nearest"} and chosen["search"]["training_episodes"] == 4
    before = (out / "trials.json").stat().st_mtime_ns
    assert run(["search", "--trials", "2", *common, "--out", str(out)]) == 0  # all trials are there
    assert (out / "trials.json").stat().st_mtime_ns == before
    chosen["methods"]["prototypical"]["settings"] = {"options.input_unit": True, "stage2.learning_rate": 0.02}
    (out / "settings.yaml").write_text(yaml.safe_dump(chosen))
    table = tmp_path / "table"
    assert run(["compare", *common, "--settings", str(out / "settings.yaml"), "--out", str(table)]) == 0
    text = (table / "table.md").read_text()
    assert "methods with the settings that settings.yaml chose on validation classes (listed in table.md)" in text
    assert "- Prototypical: input_unit on, stage2.learning_rate 0.02" in text
    assert run(["compare", "--from-raw", str(table / "raw.jsonl"), "--out", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "table.md").read_text() == text
    cells = [json.loads(path.read_text()) for path in (table / "cells").iterdir()]
    config = next(cell["config"] for cell in cells if cell["row"] == "prototypical")
    assert config["options"] == {"input_unit": True} and config["stage2"]["learning_rate"] == 0.02


def test_settings_that_the_search_chooses_are_refused(common: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", *common, "--set", "options.project=false"]) == 2
    assert "error: --set options.project: the search chooses it" in capsys.readouterr().err
    assert run(["search", *common, "--methods", ","]) == 2
    assert "error: --methods and --data name at least one" in capsys.readouterr().err
    assert run(["compare", *common, "--methods", ","]) == 2
    assert "error: --methods names no method" in capsys.readouterr().err
    assert run(["compare", *common, "--fine-tune-episodes", "some"]) == 2
    assert "error: --fine-tune-episodes 'some': a number from 2 up, or all" in capsys.readouterr().err

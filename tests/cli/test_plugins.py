"""A method in one file outside the package: its row in a comparison, its runs, its errors."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dmin.cli.app import run
from dmin.cli.plugins import plugins_first
from dmin.methods import METHODS, registry
from tests.cli.test_research import SMALL
from tests.training.runs import command

PLUGIN = '''
"""Nearest mean by a learned weight per dimension."""

import torch
from torch import Tensor, nn

from dmin.methods import FewShotMethod, Traits, register
from dmin.methods.base import cosine, masked_mean


@register
class Weighted(FewShotMethod):
    """Cosine to the mean after a weight per dimension."""

    traits = Traits(name="mine", title="My weights", learning_rate=1e-2)

    def __init__(self, dim: int, start: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((dim,), start))

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        means = masked_mean(support, mask) * self.weight  # [..., C, d]
        return 10 * cosine((query * self.weight).unsqueeze(-2), means.unsqueeze(-3))  # [..., L, C]
'''


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test loads is forgotten after it."""
    monkeypatch.delenv("DMIN_PLUGINS", raising=False)
    monkeypatch.setattr(registry, "_loaded", set())
    before = dict(METHODS)
    yield
    os.environ.pop("DMIN_PLUGINS", None)
    METHODS.clear()
    METHODS.update(before)


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "weighted.py"
    path.write_text(PLUGIN)
    return path


def forget() -> None:
    """As a new process begins."""
    registry._loaded.clear()
    METHODS.pop("mine", None)
    os.environ.pop("DMIN_PLUGINS", None)


def test_a_method_from_one_file_gets_its_row(
    plugin: Path, words_file: Path, tiny_encoder_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    common = [*SMALL.split(), "--set", f"encoder={tiny_encoder_folder}", "--out", str(out)]
    arguments = ["--methods", "mine,nearest", "--data", str(words_file), *common]
    assert run(["compare", "--plugin", str(plugin), *arguments]) == 0
    assert "My weights" in capsys.readouterr().out
    with (out / "table.csv").open() as file:
        rows = {row["row"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"mine", "nearest"} and float(rows["mine"]["accuracy"]) > 0.5
    assert os.environ["DMIN_PLUGINS"] == str(plugin)  # for processes that this one starts


def test_a_run_of_a_plugin_is_opened_with_the_same_option(
    plugin: Path, words_file: Path, tiny_encoder_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    train = command(words_file, tiny_encoder_folder, folder, "--method", "mine", "--set", "options.start=0.5")
    assert run([*train, "--episodes", "4", "--plugin", str(plugin)]) == 0
    evaluate = ["evaluate", str(folder), "--way", "2", "--shot", "1", "--queries", "4", "--episodes", "5"]
    assert run([f"--plugin={plugin}", *evaluate]) == 0
    assert "My weights" in capsys.readouterr().out
    forget()
    assert run(evaluate) == 2
    error = capsys.readouterr().err
    assert "unknown method 'mine'" in error and "--plugin" in error and "Traceback" not in error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def broken(:\n", "cannot be loaded: SyntaxError: invalid syntax"),
        ("raise ValueError('why')\n", "cannot be loaded: ValueError: why"),
        ("x = 1\n", "registers no method"),
        (None, "cannot be loaded: no such file"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_one_line(
    text: str | None, message: str, plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin.unlink() if text is None else plugin.write_text(text)
    assert run(["compare", "--plugin", str(plugin)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: plugin '{plugin}'") and message in error
    assert error.count("\n") == 1


def test_the_help_lists_the_methods_of_the_registry(plugin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "--help", "--plugin", str(plugin)]) == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert ", ".join(METHODS) in text and "logistic, mine." in text
    assert run(["--help"]) == 0
    assert "--plugin" in capsys.readouterr().out


def test_the_option_may_stand_anywhere_but_not_after_two_dashes() -> None:
    assert plugins_first(["compare", "--plugin", "a.py", "--way", "5", "--plugin=b.py"]) == [
        "--plugin", "a.py", "--plugin", "b.py", "compare", "--way", "5",
    ]  # fmt: skip
    given = ["classify", "--", "--plugin", "text"]
    assert plugins_first(given) == given
    assert plugins_first(["compare", "--plugin"]) == ["compare", "--plugin"]

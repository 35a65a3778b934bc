"""A mutation fuzzer over everything that is read from files, and over command lines.

Whatever is changed, the answer is a `DminError` of one line or a result: never another exception, never a wait of more than
five seconds, never a file outside of the folder, and where digests guard the files never another meaning than before.
`make stress` runs 20,000 mutations of files; CI a tenth.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dmin.cli.app import run
from dmin.data import load_corpus
from dmin.errors import DminError
from tests.fuzz.mutations import NASTY_TEXTS, mutate_file, mutate_words
from tests.fuzz.targets import EXAMPLES, TARGETS, Target

MUTATIONS = 20_000 if os.environ.get("DMIN_STRESS") else 2_000
SEED = int(os.environ.get("DMIN_FUZZ_SEED", "0"))
SECONDS = 5


@contextmanager
def no_hang() -> Iterator[None]:
    """Raise where something takes longer than it may."""

    def ring(number: int, frame: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_changed_files_are_refused_in_one_line_or_mean_the_same(target: Target, tmp_path: Path) -> None:
    whole, changed = tmp_path / "whole", tmp_path / "changed" / "in"
    whole.mkdir()
    target.make(whole)
    meaning = target.read(whole)
    random = Random(f"{target.name} {SEED}")
    refused = 0
    for number in range(MUTATIONS // len(TARGETS)):
        shutil.rmtree(changed, ignore_errors=True)
        shutil.copytree(whole, changed)
        path = random.choice(files_of(changed))
        before = path.read_bytes()
        mutate_file(path, random)
        where = f"{target.name}, seed {SEED}, mutation {number} of {path.relative_to(changed)}"
        try:
            with no_hang():
                found = target.read(changed)
        except DminError as error:
            refused += 1
            assert "\n" not in str(error).strip() and len(str(error)) < 2000, where
        except Exception as error:  # noqa: BLE001 (any other exception is the fault we look for)
            pytest.fail(f"{where}: {type(error).__name__}: {error}")
        else:
            if target.exact and path.name != "README.md" and path.read_bytes() != before:
                assert repr(found) == repr(meaning), f"{where}: a silent difference"
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["changed", "whole"], where
        assert [entry.name for entry in (tmp_path / "changed").iterdir()] == ["in"], where
    assert refused > 0


@pytest.mark.parametrize(
    "name", [*NASTY_TEXTS, "x.csv:text=", "x" * 300 + ".csv", "~nobody_here/x.csv", ":text=a", ","]
)
def test_names_that_cannot_be_data_are_refused(name: str) -> None:
    with pytest.raises(DminError) as caught:
        load_corpus(name)
    assert len(str(caught.value)) < 2000


COMMANDS = [
    ["classify", "--examples", "examples.json", "--model", "nearest", "apple pie"],
    ["data", "check", "examples.json"],
    ["data", "info", "starter"],
    ["train", "--data", "examples.json", "--split-seed", "1", "--way", "5", "--set", "stage1.epochs=1"],
    ["evaluate", "runs/none", "--way", "5,10", "--shot", "1", "--episodes", "3"],
    ["compare", "--data", "examples.json", "--methods", "nearest", "--episodes", "2"],
    ["assess", "--examples", "examples.json", "--test", "examples.json", "--reject", "0.5"],
    ["figure", "curves", "runs/none"],
    ["model", "info", "runs/none"],
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_changed_command_lines_end_with_a_code_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    random = Random(SEED)
    for number in range(MUTATIONS // 20):
        (tmp_path / "examples.json").write_text(json.dumps(EXAMPLES))
        words = random.choice(COMMANDS)
        words = [words[0], *mutate_words(words[1:], random)]
        if "--help" in words or "demo" in words:
            continue
        with no_hang():
            code = run(words)
        errors = capsys.readouterr().err
        assert code in (0, 1, 2), f"seed {SEED}, command {number}: dmin {words} ended with {code}"
        assert "Traceback" not in errors
        if code:
            assert any(line.startswith("error: ") for line in errors.splitlines()), words

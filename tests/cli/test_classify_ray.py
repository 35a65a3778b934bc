"""`dmin classify --engine ray`: the command starts a Ray of its own, quietly, and ends it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dmin.cli.app import run

pytestmark = pytest.mark.slow

EXAMPLES = {"refund": ["I want my money back", "please return what I paid"], "parcel": ["where is my order"]}
NUMBER = re.compile(r"-?\d+\.\d+")
ARGUMENTS = ["classify", "--engine", "ray"]


@pytest.fixture
def examples(tmp_path: Path) -> str:
    path = tmp_path / "intents.json"
    path.write_text(json.dumps(EXAMPLES))
    return str(path)


@pytest.fixture
def mails(tmp_path: Path) -> Path:
    folder = tmp_path / "mails"
    folder.mkdir()
    for number, texts in enumerate((["money back please", "my order is late"], ["where is it", ""])):
        lines = [json.dumps({"id": place, "said": text}) + "\n" for place, text in enumerate(texts)]
        (folder / f"{number}.jsonl").write_text("".join(lines))
    return folder


def test_a_folder_is_answered_like_its_files_one_by_one(examples: str, mails: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="bulk scoring on Ray needs an extra: pip install 'dmin[ray]'")
    output = tmp_path / "answers"
    more = ["--examples", examples, "--input", str(mails / "*.jsonl"), "--output", str(output), "--text-column", "said"]
    command = [sys.executable, "-m", "dmin", *ARGUMENTS, *more, "--workers", "1", "--top-k", "2"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment | {"RAY_ADDRESS": "local"}, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "" and done.stderr.startswith("4 rows in 2 files written, ") and done.stderr.count("\n") == 1
    for path in mails.iterdir():
        one = tmp_path / path.name
        alone = ["classify", "--examples", examples, "--input", str(path), "--output", str(one)]
        assert run([*alone, "--text-column", "said", "--top-k", "2"]) == 0
        told, found = (output / path.name).read_text(), one.read_text()
        assert NUMBER.sub("#", told) == NUMBER.sub("#", found)
        # Scores differ by the number of texts that are scored together, in the seventh digit: so may the last one printed.
        numbers = ([float(number) for number in NUMBER.findall(text)] for text in (told, found))
        assert next(numbers) == pytest.approx(next(numbers), abs=1.01e-4)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--input", "{mails}/*.csv", "--output", "{tmp}/out"], "no file matches"),
        (["--input", "{mails}", "--output", "{tmp}/out"], "no column 'text'; it has id, said"),
        (["--input", "{mails}", "--output", "{mails}"], "lies among the inputs"),
        (["--input", "{mails}", "--output", "{tmp}/out", "--workers", "0"], "--workers 0: at least 1"),
        (["--input", "{mails}"], "--engine ray needs --input with a folder, pattern or file, and --output"),
        (["--input", "-", "--output", "{tmp}/out"], "--engine ray needs --input"),
        (["hello", "--output", "{tmp}/out"], "--engine ray needs --input"),
        (["hello", "--engine", "local", "--workers", "2"], "--workers needs --engine ray"),
        (["hello", "--engine", "spark"], "'spark' is not one of 'local', 'ray'"),
    ],
)
def test_an_error_is_one_line_and_writes_nothing(
    examples: str, mails: Path, tmp_path: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ray", reason="bulk scoring on Ray needs an extra: pip install 'dmin[ray]'")
    given = [option.format(mails=mails, tmp=tmp_path) for option in more]
    assert run([*ARGUMENTS, "--examples", examples, *given]) == 2
    errors = capsys.readouterr().err
    assert message in errors and errors.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_without_ray(
    examples: str, mails: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    more = ["--examples", examples, "--input", str(mails), "--output", str(tmp_path / "out")]
    assert run([*ARGUMENTS, *more]) == 2
    assert capsys.readouterr().err == 'error: --engine ray needs an extra: pip install "dmin[ray]"\n'


def test_help_does_not_import_ray() -> None:
    program = "import sys; from dmin.cli.app import run; run(['classify', '--help']); sys.exit('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "--workers" in done.stdout

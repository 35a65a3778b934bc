"""`dmin classify`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from dmin.cli.app import run

YAML = """
refund:
  - I want my money back
  - please return what I paid
parcel:
  - where is my order
  - my package is late
"""


@pytest.fixture
def examples(tmp_path: Path) -> str:
    path = tmp_path / "intents.yaml"
    path.write_text(YAML)
    return str(path)


def test_texts(examples: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["classify", "--examples", examples, "give me my money", "has my parcel been sent", "--top-k", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0].strip() for line in lines] == [
        "refund",
        "refund",
        "parcel",
        "parcel",
        "parcel",
        "refund",
    ]
    assert run(["classify", "--examples", examples, "give me my money", "--explain", "--reject", "0.99"]) == 0
    output = capsys.readouterr().out
    assert "-> unknown" in output and "refused: below 0.99" in output and "I want my money back" in output


def test_files_and_streams(
    examples: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "mails.csv"
    source.write_text("id,body\n1,I want a refund\n2,where did my package go\n3,who won the chess game in 1972\n")
    output = tmp_path / "answers.csv"
    arguments = ["classify", "--examples", examples, "--input", str(source), "--text-column", "body"]
    assert run([*arguments, "--output", str(output), "--reject", "auto", "--explain"]) == 0
    rows = list(csv.DictReader(io.StringIO(output.read_text())))
    assert [row["label"] for row in rows] == ["refund", "parcel", "unknown"] and [row["id"] for row in rows] == [
        "1",
        "2",
        "3",
    ]
    assert run([*arguments, "--output", str(output)]) == 2  # not over what is there
    monkeypatch.setattr("sys.stdin", io.StringIO("money back please\nlate package\n"))
    capsys.readouterr()
    assert run(["classify", "--examples", examples, "--input", "-"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["label"] for row in found] == ["refund", "parcel"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "either texts or --input"),
        (["hello", "--reject", "much"], "a number between -1 and 1, or auto"),
        (["hello", "--resume"], "--resume needs --output"),
        (["hello", "--model", "nowhere"], "no such run or model folder"),
        (["", "--top-k", "1"], "empty"),
        (["--input", "gone.csv", "--output", "x.csv"], "no such file"),
    ],
)
def test_an_error_is_one_line_and_writes_nothing(
    examples: str, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["classify", "--examples", examples, *more]) == 2
    errors = capsys.readouterr().err
    assert message in errors and errors.count("\n") == 1
    assert not Path("x.csv").exists() and not Path("x.csv.part").exists()


def test_a_saved_classifier(examples: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dmin import FewShotClassifier

    saved = tmp_path / "inbox"
    FewShotClassifier(device="cpu").fit({"refund": ["money back"], "parcel": ["late package"]}).save(saved)
    assert run(["classify", "--model", str(saved), "where is my package"]) == 0
    assert capsys.readouterr().out.startswith("parcel")
    assert run(["classify", "--model", str(saved), "--examples", examples, "hello"]) == 2
    assert "examples of its own" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--top-k", "0"], "--top-k 0: at least 1"),
        (["--reject", "auto", "--unknown", "refund"], "--unknown 'refund': a class has this name too"),
    ],
)
def test_top_k_unknown_label_and_missing_examples_are_checked(
    examples: str, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["classify", "--examples", examples, "hello", *more]) == 2
    assert message in capsys.readouterr().err
    assert run(["classify", "hello"]) == 2
    assert "--examples is needed" in capsys.readouterr().err


def test_stopped_on_request_is_no_success(
    examples: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dmin.bulk.fields.answer_fields", stop)
    assert run(["classify", "--examples", examples, "hello"]) == 130
    assert capsys.readouterr().err == "stopped\n"

"""`dmin assess`: a classifier on a user's own files; `dmin evaluate --examples`, which refers to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmin.cli.app import run

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


def test_prints_and_writes_what_was_measured(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples, test = files
    (tmp_path / "outside.txt").write_text("the capital of France\nhow tall is the tower\n")
    out = tmp_path / "out"
    arguments = ["assess", "--examples", examples, "--test", test, "--out", str(out)]
    assert run([*arguments, "--outside", str(tmp_path / "outside.txt"), "--reject", "auto"]) == 0
    output = capsys.readouterr().out
    for part in ("accuracy 100.0 %", "macro-F1", "logistic regression", "calibration error", "3 out-of-scope texts"):
        assert part in output
    assert "FPR at 95 % TPR" in output and "false rejections" in output
    stored = json.loads((out / "assessment.json").read_text())
    assert stored["separation"]["out_of_scope"] == 3 and stored["refused_out_of_scope"] == 1.0
    assert {path.name for path in out.iterdir()} == {
        "assessment.json", "reliability.png", "confusion.png", "refusal.png", "precision.png", "predictions.jsonl",
        "report.html",
    }  # fmt: skip
    assert "with refusal (a refused text of a class counts as wrong)" in output
    assert "if nothing is refused, as below\n  for comparison, nearest prototype" in output
    lines = [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]
    assert [line["label"] for line in lines] == ["refund", "parcel", "chess", None, None]
    assert all(line["answer"] == line["label"] for line in lines[:2]) and all(line["refused"] for line in lines[2:])
    assert run([*arguments, "--model", "dmin-plus", "--keep-base", "--no-names"]) == 0
    assert "texts of base classes" in capsys.readouterr().out


def test_a_saved_classifier_is_measured_without_examples(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dmin import FewShotClassifier

    monkeypatch.chdir(tmp_path)
    FewShotClassifier(device="cpu").fit(EXAMPLES).save(tmp_path / "inbox")
    assert run(["assess", "--model", "inbox", "--test", files[1]]) == 0
    assert "2 classes, 6 examples, 2 texts answered" in capsys.readouterr().out
    assert (tmp_path / "runs" / "inbox-test" / "assessment.json").is_file()


def test_a_target_precision_finds_the_threshold(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["assess", "--examples", files[0], "--test", files[1], "--out", str(out)]
    assert run([*arguments, "--target-precision", "1"]) == 0
    output = capsys.readouterr().out
    stored = json.loads((out / "assessment.json").read_text())["target"]
    assert f"precision 100.0 % with --reject {stored['threshold']:g}, which answers 2 of 3 texts" in output
    assert stored["coverage"] == pytest.approx(2 / 3) and stored["precision"] == 1.0
    assert run([*arguments, "--reject", str(stored["threshold"])]) == 0  # what it says is what that threshold gives
    lines = [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]
    assert [line["right"] for line in lines] == [True, True, True] and [line["refused"] for line in lines] == [
        False, False, True,
    ]  # fmt: skip


def test_the_page_shows_the_wrong_texts_with_the_examples_that_decided(files: tuple[str, str], tmp_path: Path) -> None:
    rows = [*TEST, {"text": "give me <b>my</b> money\x1b[2J", "label": "parcel"}]
    Path(files[1]).write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(["assess", "--examples", files[0], "--test", files[1], "--out", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out/report.html").read_text()
    assert "Wrong answers: 2 of 4" in page and "out of scope, but answered as" in page
    assert "give me &lt;b&gt;my&lt;/b&gt; money\\x1b[2J" in page and "\x1b" not in page
    assert "answered as refund" in page and "its own class parcel has" in page and "example: give me a refund" in page


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--reject", "often"], "a number between -1 and 1, or auto"),
        (["--reject", "50"], "--reject '50': a number between -1 and 1, or auto"),
        (["--reject", "nan"], "a number between -1 and 1, or auto"),
        (["--target-precision", "95"], "--target-precision 95.0: above 0 and at most 1"),
        (["--target-precision", "0.9", "--reject", "0.1"], "leave out --reject"),
        (["--device", "foo"], "no such device: 'foo'"),
        (["--model", "nearest", "--device", "cuda:77"], "device 'cuda:77' is not there on this machine"),
        (["--test", "gone.jsonl"], "no such file: gone.jsonl"),
        (["--model", "nowhere"], "no such run or model folder"),
        (["--way", "5"], "no such option '--way'"),
    ],
)
def test_an_error_is_one_line_and_code_two(
    files: tuple[str, str], more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["assess", "--examples", files[0], "--test", files[1], *more]) == 2
    errors = capsys.readouterr().err
    assert message in errors and errors.count("\n") == 1


def test_examples_and_test_are_needed(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["assess", "--test", files[1]]) == 2
    assert "--examples is needed" in capsys.readouterr().err
    assert run(["assess", "--examples", files[0]]) == 2
    assert "--test" in capsys.readouterr().err


def test_evaluate_with_examples_does_the_same_and_refers_to_assess(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {}
    for command in ("evaluate", "assess"):
        out = tmp_path / command
        assert run([command, "--examples", files[0], "--test", files[1], "--reject", "auto", "--out", str(out)]) == 0
        errors = capsys.readouterr().err
        assert ("use dmin assess" in errors) == (command == "evaluate") and errors.count("\n") <= 1
        found[command] = json.loads((out / "assessment.json").read_text()) | {"seconds": 0}
    assert found["evaluate"] == found["assess"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["somewhere", "--reject", "auto"], "--reject: only dmin assess has this"),
        (["--examples", "{examples}"], "--examples and --test belong together"),
        (["--examples", "{examples}", "--test", "{test}", "--way", "5"], "--way: only episodes have this"),
    ],
)
def test_evaluate_refuses_options_of_the_other_command(
    files: tuple[str, str], arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [argument.format(examples=files[0], test=files[1]) for argument in arguments]
    assert run(["evaluate", *given]) == 2
    errors = capsys.readouterr().err
    assert message in errors and errors.count("\n") == 1


def test_the_options_of_assess_are_hidden_in_evaluate(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "--help"]) == 0
    output = capsys.readouterr().out
    assert "--unknown-rate" in output and "dmin assess" in output
    for option in ("--examples", "--test ", "--outside", "--reject", "--names", "--keep-base"):
        assert option not in output

"""`dmin classify`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from dmin import FewShotClassifier
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


def test_the_file_itself_can_be_learned_from(
    examples: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "mails.csv"
    source.write_text("text\n" + "\n".join(f"my package number {n} is late" for n in range(9)) + "\nmoney back\n")
    learned: list[list[str]] = []
    adapt = FewShotClassifier.adapt

    def watched(classifier: FewShotClassifier, texts: list[str]) -> FewShotClassifier:
        learned.append(list(texts))
        return adapt(classifier, texts)

    monkeypatch.setattr(FewShotClassifier, "adapt", watched)
    arguments = ["classify", "--examples", examples, "--input", str(source)]
    assert run(arguments) == 0 and learned == []
    plain = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert run([*arguments, "--learn-from-input"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(learned[0]) == 10 and [row["label"] for row in found] == ["parcel"] * 9 + ["refund"]
    assert [row["score"] for row in found] == [row["score"] for row in plain]  # cosines stay
    assert [row["probability"] for row in found] != [row["probability"] for row in plain]
    monkeypatch.setattr("dmin.adaptive.unlabelled.MOST_TEXTS", 4)
    assert run([*arguments, "--learn-from-input"]) == 0 and len(learned[1]) == 4 and len(set(learned[1])) == 4


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "either texts or --input"),
        (["--input", "-", "--learn-from-input"], "--learn-from-input needs --input with one file"),
        (["hello", "--learn-from-input"], "--learn-from-input needs --input with one file"),
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


TICKETS = "ticket;intent\nI want my money back;refund\nplease return what I paid;refund\nmy package is late;parcel\n"


def test_columns_of_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tickets.csv").write_text(TICKETS)
    (tmp_path / "mails.csv").write_text("id,body,note\n1,money back please,x\n2,late package,y\n")
    arguments = ["classify", "--input", f"{tmp_path}/mails.csv"]
    for number, more in enumerate(
        (
            ["--examples", f"{tmp_path}/tickets.csv:text=ticket,label=intent", "--text-column", "body"],
            ["--examples", f"{tmp_path}/tickets.csv", "--text-column", "body", "--label-column", "intent"],
            ["--examples", f"{tmp_path}/tickets.csv"],  # all are obvious, and said
        )
    ):
        output = tmp_path / f"answers{number}.csv"
        assert run([*arguments, *more, "--output", str(output)]) == 0
        assert [row["label"] for row in csv.DictReader(io.StringIO(output.read_text()))] == ["refund", "parcel"]
    errors = capsys.readouterr().err
    assert "note: " in errors and "read from the column 'ticket'" in errors and "read from the column 'body'" in errors
    assert run([*arguments, "--examples", f"{tmp_path}/tickets.csv:text=words"]) == 2
    assert "no column 'words'; it has ticket, intent" in capsys.readouterr().err
    assert (
        run(["classify", "--input", f"{tmp_path}/mails.csv:text=boddy", "--examples", f"{tmp_path}/tickets.csv"]) == 2
    )
    assert "no column 'boddy' (did you mean 'body'?)" in capsys.readouterr().err


def test_rows_of_another_encoding_stop_are_left_out_or_kept(
    examples: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "mails.jsonl"
    source.write_bytes(b'{"text": "money"}\n{"text": "caf\xe9"}\n{"text": "\\ud800"}\n{"text": "parcel"}\n')
    arguments = ["classify", "--examples", examples, "--input", str(source)]
    assert run([*arguments, "--output", f"{tmp_path}/stop.csv"]) == 2
    errors = capsys.readouterr().err
    assert "mails.jsonl, row 2: text holds bytes that are not text" in errors and errors.count("\n") == 1
    assert not list(tmp_path.glob("stop*"))
    assert run([*arguments, "--output", f"{tmp_path}/skip.csv", "--on-error", "skip"]) == 0
    assert "2 rows could not be used, left out (row 2:" in capsys.readouterr().err
    assert len((tmp_path / "skip.csv").read_text().splitlines()) == 3
    assert run([*arguments, "--output", f"{tmp_path}/keep.csv", "--on-error", "keep"]) == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "keep.csv").read_text())))
    assert [bool(row["error"]) for row in rows] == [False, True, True, False]
    assert [bool(row["label"]) for row in rows] == [True, False, False, True]
    source.write_bytes(b'{"text": "money"}\n{"text": "caf\xe9"}\n')
    assert run([*arguments, "--output", f"{tmp_path}/latin.jsonl", "--encoding", "latin-1"]) == 0
    assert "café" in (tmp_path / "latin.jsonl").read_text(encoding="utf-8")
    assert run([*arguments, "--output", f"{tmp_path}/x.csv", "--encoding", "klingon"]) == 2
    assert "unknown encoding 'klingon'" in capsys.readouterr().err


def test_resume_is_bound_to_input_and_examples(
    examples: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dmin.bulk import fields, files

    monkeypatch.setattr(files, "BATCH", 2)
    real, calls = fields.answer_fields, []

    def stop(*given: object, **more: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*given, **more)  # type: ignore[arg-type]

    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("text\n" + "money back\nlate parcel\n" * 3)
    arguments = ["classify", "--input", str(source), "--output", str(output)]
    monkeypatch.setattr(fields, "answer_fields", stop)
    assert run([*arguments, "--examples", examples]) == 130
    monkeypatch.setattr(fields, "answer_fields", real)
    (tmp_path / "other.yaml").write_text(YAML + "hours: [when do you open]\n")
    assert run([*arguments, "--examples", f"{tmp_path}/other.yaml", "--resume"]) == 2
    assert "another classifier" in capsys.readouterr().err
    assert run([*arguments, "--examples", examples, "--resume", "--explain"]) == 2
    assert "use the same options" in capsys.readouterr().err
    source.write_text("text\nwhen do you open\n")
    assert run([*arguments, "--examples", examples, "--resume"]) == 2
    assert "another input" in capsys.readouterr().err
    source.write_text("text\n" + "money back\nlate parcel\n" * 3)
    assert run([*arguments, "--examples", examples, "--resume"]) == 0
    assert len(output.read_text().splitlines()) == 7 and [p.name for p in tmp_path.glob("out*")] == ["out.csv"]


def test_formulas_in_cells(examples: str, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("text,id\nmoney back,=cmd()\n")
    arguments = ["classify", "--examples", examples, "--input", str(source)]
    assert run([*arguments, "--output", f"{tmp_path}/safe.csv"]) == 0
    assert ",'=cmd()," in (tmp_path / "safe.csv").read_text()
    assert run([*arguments, "--output", f"{tmp_path}/raw.csv", "--raw-cells"]) == 0
    assert ",=cmd()," in (tmp_path / "raw.csv").read_text()


def test_another_encoder_by_option(examples: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for encoder in ("static", "cascade"):
        assert run(["classify", "--examples", examples, "--encoder", encoder, "has my parcel been sent"]) == 0
        assert capsys.readouterr().out.startswith("parcel\t")
    assert run(["classify", "--examples", examples, "--encoder", "cascade", "--explain", "send my money back"]) == 0
    assert "stage: 2, the default encoder" in capsys.readouterr().out  # four examples say too little to be sure
    FewShotClassifier().fit({"a b": ["c d"], "e f": ["g h"]}).save(tmp_path / "saved")
    assert run(["classify", "--model", str(tmp_path / "saved"), "--encoder", "static", "c"]) == 2
    assert "leave out --encoder" in capsys.readouterr().err

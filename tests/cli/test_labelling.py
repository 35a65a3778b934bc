"""`dmin suggest`, `dmin discover` and `dmin label`: from a file without labels to a saved classifier."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dmin import FewShotClassifier
from dmin.cli.app import run
from dmin.data.labelled import read_corpus
from dmin.encoder import Encoder
from dmin.labelling import vectors
from tests.conftest import word_corpus

CORPUS = word_corpus(texts=6, classes=4)
TEXTS = [f"{label} {text}" for label, text in zip(CORPUS.labels, CORPUS.texts, strict=True)]


@pytest.fixture(autouse=True)
def _one_encoder(embedded_encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pile's encoder, opened once for all tests of this file."""
    monkeypatch.setattr(vectors, "opened_encoder", lambda _: embedded_encoder)


@pytest.fixture
def pile(tmp_path: Path) -> Path:
    path = tmp_path / "mails.csv"
    path.write_text("id,text\n" + "".join(f"{number},{text}\n" for number, text in enumerate(TEXTS)))
    return path


@pytest.fixture
def known(tmp_path: Path) -> Path:
    path = tmp_path / "known.yaml"
    path.write_text(
        "apple:\n- a ripe apple and a pear\n- plum and cherry\ncar:\n- the engine of my car\n- brake and wheel\n"
    )
    return path


def test_suggest_prints_rows_with_reasons(pile: Path, known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["suggest", "--input", str(pile), "-n", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and all("similar text" in line for line in lines)
    row, text, _ = lines[0].split("\t")
    assert TEXTS[int(row) - 2] == text  # line 1 of the file is the header
    assert run(["suggest", "--input", str(pile), "--examples", str(known), "-n", "3", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(found) == 3 and all(set(line["likely"]) == {"apple", "car"} for line in found)
    assert {line["text"].split()[0] for line in found} & {"music", "sea"}


def test_suggest_says_when_there_are_fewer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "same.txt"
    path.write_text("where is it\n" * 30 + "\n\n")
    assert run(["suggest", "--input", str(path)]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1 and "fewer than -n 20" in captured.err
    assert "2 rows hold no readable text" in captured.err


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "red \x1b[31m alert \x07"}) + "\n")
    assert run(["suggest", "--input", str(path)]) == 0
    assert "\x1b" not in (shown := capsys.readouterr().out) and "\x07" not in shown and "alert" in shown


@pytest.mark.parametrize("verb", ["suggest", "discover", "label"])
@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("id,text\n", [], "the pile is empty"),
        ("id,notes,more\n1,x,y\n", [], "no column 'text'"),
        ("id,text\n1,x\n", ["--examples", "EXAMPLES"], "no column 'label'"),
        ("id,text\n1,x\n", ["--most", "0"], "--most"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, content: str, options: list[str], message: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    examples = tmp_path / "examples.csv"
    examples.write_text("text,kind,more\nhello,a,b\n")
    options = [str(examples) if option == "EXAMPLES" else option for option in options]
    out = [] if verb == "suggest" else ["--out", str(tmp_path / "out")]
    assert run([verb, "--input", str(path), *options, *out]) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_pile_of_equal_texts_and_one_of_unreadable_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Equal texts: one theme, one question, no classifier of one class, and the answer is kept. Unreadable: one line."""
    path = tmp_path / "same.txt"
    path.write_text("where is it\n" * 30)
    assert run(["discover", "--input", str(path), "--out", str(tmp_path / "d")]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("30\t")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\nparcel\n" * 3))
    assert run(["label", "--input", str(path), "--out", str(tmp_path / "l")]) == 0
    captured = capsys.readouterr()
    assert "nothing is left that differs" in captured.out and "at least two classes" in captured.err
    assert read_corpus(tmp_path / "l" / "examples.yaml").examples == {"parcel": ["where is it"]}
    assert not (tmp_path / "l" / "classifier").exists()
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "\\ud800"}\n{"text": 7}\n{"text": " "}\n')
    for verb in ("suggest", "discover", "label"):
        assert run([verb, "--input", str(bad)]) == 2
        error = capsys.readouterr().err
        assert "none of its 3 rows holds a readable text" in error and len(error.strip().splitlines()) == 1


def test_texts_of_one_class_only(
    pile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One class is enough for suggestions; a session of one class keeps its answers and says what is missing."""
    one = tmp_path / "one.yaml"
    one.write_text("fruit:\n- a ripe apple and a pear\n- plum and cherry\n")
    assert run(["suggest", "--input", str(pile), "--examples", str(one), "-n", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n" * 11))
    assert label(pile, tmp_path / "o", "--examples", str(one)) == 0
    assert "a classifier needs at least two classes" in capsys.readouterr().err
    assert len(read_corpus(tmp_path / "o" / "examples.yaml").examples["fruit"]) == 13


def test_discover_writes_what_classify_takes(pile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "found"
    assert run(["discover", "--input", str(pile), "--out", str(out), "--themes", "4"]) == 0
    captured = capsys.readouterr()
    assert "(fits nowhere)" in captured.out and "map.html" in captured.err
    assert {path.name for path in out.iterdir()} >= {"medium.yaml", "themes.csv", "map.html"}
    themes = read_corpus(out / "medium.yaml").examples
    assert run(["classify", "--examples", str(out / "medium.yaml"), TEXTS[0]]) == 0
    assert capsys.readouterr().out.split("\t")[0] in themes
    assert (out / "map.html").read_text().count("<circle") == len(TEXTS)


def test_discover_with_known_classes_looks_at_what_they_refuse(
    pile: Path, known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new"
    assert run(["discover", "--input", str(pile), "--examples", str(known), "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert " of 24 texts are refused by the known classes" in text
    refused = [line.split(",")[1].split()[0] for line in (out / "themes.csv").read_text().splitlines()[1:]]
    assert refused.count("music") + refused.count("sea") > refused.count("apple") + refused.count("car")


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal: what is written to the handle comes out of standard input."""
    import pty

    master, slave = pty.openpty()
    with os.fdopen(slave, "r", encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield master
    os.close(master)


def label(pile: Path, out: Path, *options: str) -> int:
    return run(["label", "--input", str(pile), "--out", str(out), *options])


def test_a_session_by_single_keys_is_continued(
    pile: Path, tmp_path: Path, keyboard: int, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "session"
    os.write(keyboard, "nfirst\nnsecond\n1suu2cnGröße: ✓\n?q".encode())
    assert label(pile, out) == 0
    shown = capsys.readouterr()
    assert "classifier saved" in shown.err and "taken back" in shown.out and "skipped" in shown.out
    examples = read_corpus(out / "examples.yaml").examples
    assert set(examples) == {"first", "second", "Größe: ✓"} and sum(map(len, examples.values())) == 4
    assert set(FewShotClassifier.load(out / "classifier").classes_) == set(examples)
    os.write(keyboard, b"1q")
    assert label(pile, out) == 0
    assert "continued: 4 answers, 3 classes" in capsys.readouterr().out
    assert sum(map(len, read_corpus(out / "examples.yaml").examples.values())) == 5


@pytest.mark.parametrize(("options", "calls"), [((), True), (("--no-unlabelled",), False)])
def test_unlabelled_texts_are_learned_unless_switched_off(
    pile: Path, known: Path, tmp_path: Path, keyboard: int, monkeypatch: pytest.MonkeyPatch, options: Any, calls: bool
) -> None:
    learned: list[str] = []
    monkeypatch.setattr(FewShotClassifier, "adapt", lambda _, texts, vectors: learned.extend(texts))
    os.write(keyboard, b"11q")
    assert label(pile, tmp_path / "o", "--examples", str(known), *options) == 0
    assert bool(learned) == calls and set(learned) <= set(TEXTS)


def test_the_beginning_of_a_name_is_asked_about(
    pile: Path, known: Path, tmp_path: Path, keyboard: int, capsys: pytest.CaptureFixture[str]
) -> None:
    os.write(keyboard, b"nAP\n1\nn\nncar\nnap\n\nq")  # the third: neither apple nor a new class, so asked again
    assert label(pile, tmp_path / "o", "--examples", str(known)) == 0
    examples = read_corpus(tmp_path / "o" / "examples.yaml").examples
    assert {name: len(texts) for name, texts in examples.items()} == {"apple": 3, "car": 3}
    assert known.read_text().count("- ") == 4  # the examples file is never written
    assert "1 apple" in (output := capsys.readouterr().out) and "2 AP, a new class" in output


def test_a_name_that_begins_a_known_one_can_be_a_class_of_its_own(
    pile: Path, known: Path, tmp_path: Path, keyboard: int
) -> None:
    os.write(keyboard, b"nap\n2\nq")
    assert label(pile, tmp_path / "o", "--examples", str(known)) == 0
    assert "ap" in read_corpus(tmp_path / "o" / "examples.yaml").examples


def test_a_file_in_the_place_of_the_folder_is_said(
    pile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "o").write_text("mine")
    assert label(pile, tmp_path / "o") == 2
    assert "is a file: the session needs a folder of its own" in capsys.readouterr().err
    assert (tmp_path / "o").read_text() == "mine"


def test_a_bad_name_is_asked_again(
    pile: Path, tmp_path: Path, keyboard: int, capsys: pytest.CaptureFixture[str]
) -> None:
    os.write(keyboard, b"n" + b"x" * 250 + b"\nngood\nq")
    assert label(pile, tmp_path / "o") == 0
    assert "at most 200" in capsys.readouterr().out
    assert list(read_corpus(tmp_path / "o" / "examples.yaml").examples) == ["good"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, EOFError])
def test_ctrl_c_and_ctrl_d_keep_every_answer(
    pile: Path, tmp_path: Path, keyboard: int, stop: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["dmin.cli.label"]
    plain, keys = module.read_key, iter("n")

    def read() -> str:
        if next(keys, None) is None:
            raise stop
        return str(plain())

    monkeypatch.setattr(module, "read_key", read)
    os.write(keyboard, b"nonly\n")
    assert label(pile, tmp_path / "o") == 0
    assert list(read_corpus(tmp_path / "o" / "examples.yaml").examples) == ["only"]


def test_ctrl_d_as_a_key_ends_the_input(keyboard: int) -> None:
    module = sys.modules["dmin.cli.label"]
    typist = threading.Timer(0.5, os.write, (keyboard, b"\x04"))
    typist.start()
    with pytest.raises(EOFError):
        module.read_key()
    typist.join()


def test_every_ten_answers_the_accuracy_is_said(
    pile: Path, known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n" * 10 + "q\n"))  # keys by lines where there is no terminal
    assert label(pile, tmp_path / "o", "--examples", str(known)) == 0
    assert "[10 answers] accuracy on this pile: about" in (shown := capsys.readouterr().out) and "forecast:" in shown


def test_a_session_of_another_pile_is_refused(
    pile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\none\nq\n"))
    assert label(pile, tmp_path / "o") == 0
    pile.write_text(pile.read_text() + "99,one more\n")
    capsys.readouterr()
    assert label(pile, tmp_path / "o") == 2
    assert "begun on 24 texts, this pile has 25" in capsys.readouterr().err


def test_data_check_points_to_suggest(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "check", str(known)]) == 0
    assert f"dmin suggest --input PILE --examples {known}" in capsys.readouterr().out


@pytest.mark.slow
def test_the_tutorial_goes_from_a_file_to_a_saved_classifier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands of the page, in their order, on the first mails of its file."""
    root = Path(__file__).parents[2]
    page = (root / "docs" / "tutorials" / "an-hour-with-10000-texts.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL)
    commands = [shlex.split(line)[1:] for block in blocks for line in block.splitlines() if line.startswith("dmin ")]
    assert [command[0] for command in commands] == ["discover", "classify", "label", "classify", "discover", "suggest"]
    monkeypatch.chdir(tmp_path)
    rows = (root / "examples" / "pile" / "mails.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("mails.csv").write_text("".join(rows[:61]), encoding="utf-8")
    Path("new-mails.csv").write_text("".join([rows[0], *rows[61:101]]), encoding="utf-8")
    keys = "".join(f"n\n{('refund', 'parcel', 'hours', 'login')[number % 4]}\n" for number in range(12))
    monkeypatch.setattr("sys.stdin", io.StringIO(keys + "q\n"))
    for command in commands:
        assert run(command) == 0, capsys.readouterr().err
    assert len(Path("answers.csv").read_text(encoding="utf-8").splitlines()) == 61
    assert len(FewShotClassifier.load("runs/mails/classifier").classes_) == 4

"""The same options for columns and encoding in every command that reads files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from dmin.cli.app import run

READERS = [
    ["classify"], ["assess"], ["train"], ["evaluate"], ["compare"], ["ablate"], ["data", "info"], ["data", "check"],
    ["figure", "tsne"],
]  # fmt: skip


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_every_command_that_reads_files_has_the_options(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--help"]) == 0
    output = capsys.readouterr().out
    assert all(option in output for option in ("--text-column", "--label-column", "--encoding"))


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    path = tmp_path / "tickets.csv"
    lines = ["refund;I want my money back", "refund;give me a refund", "parcel;where is my café order", "parcel;late"]
    path.write_bytes(("what;words;x\n" + "".join(f"{line};1\n" for line in lines)).encode("windows-1252"))
    return path


def test_data_info_takes_options_or_the_file_with_its_columns(
    tickets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ["--text-column", "words", "--label-column", "what", "--encoding", "windows-1252"]
    assert run(["data", "info", str(tickets), *named]) == 0
    first = capsys.readouterr().out
    assert run(["data", "info", f"{tickets}:text=words,label=what,encoding=windows-1252"]) == 0
    assert capsys.readouterr().out == first and "4 texts, 2 classes" in first
    assert run(["data", "info", str(tickets), *named[:4]]) == 2
    assert "row 4: words holds bytes that are not text in this encoding: see --encoding" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["compare", "ablate"])
def test_what_an_error_advises_exists(command: str, tickets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--data", str(tickets), "--encoding", "windows-1252"]) == 2
    assert "no column 'text'" in (errors := capsys.readouterr().err) and "--text-column" in errors
    more = ["--text-column", "words", "--label-column", "what", "--encoding", "windows-1252"]
    assert run([command, "--data", str(tickets), *more]) == 2
    assert "no column" not in (errors := capsys.readouterr().err) and "classes" in errors  # it is read: too few classes


def test_train_keeps_the_columns_in_its_settings(tickets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = [
        "--text-column",
        "words",
        "--label-column",
        "what",
        "--encoding",
        "windows-1252",
        "--exclude",
        "a.csv:text=b,c.csv",
    ]
    assert run(["train", "--data", str(tickets), *more, "--show-settings"]) == 0
    settings = yaml.safe_load(capsys.readouterr().out)
    assert (settings["text_column"], settings["label_column"], settings["encoding"]) == (
        "words",
        "what",
        "windows-1252",
    )
    assert settings["exclude"] == ["a.csv:text=b", "c.csv"]


def test_assess_with_unlike_files_and_a_label_one_letter_off(
    tickets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("return my money", "refund"), ("my order", "parcel"), ("my money", "refnd"), ("who won at chess", "chess")]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps({"say": t, "is": n}) + "\n" for t, n in rows))
    (tmp_path / "outside.csv").write_text("message,id\nthe capital of France,1\n,2\n")
    given = [
        "assess", "--examples", f"{tickets}:text=words,label=what,encoding=windows-1252",
        "--test", f"{tmp_path}/test.jsonl:text=say,label=is", "--outside", f"{tmp_path}/outside.csv",
        "--out", f"{tmp_path}/out",
    ]  # fmt: skip
    assert run(given) == 0
    said = capsys.readouterr()
    assert "2 texts answered" in said.out and "2 out-of-scope texts" in said.out
    assert "labels one letter off a class are left out; correct them: 'refnd' (1 texts; 'refund'?)" in said.err


@pytest.mark.parametrize("value", ["a=[", "a=&x [*x]", "a: b=" + "[" * 5000, "a=2020-99-99", "a={x: 1, x: 2}"])
def test_a_setting_that_is_no_yaml_is_one_short_line(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--set", value, "--show-settings"]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: --set ") and errors.count("\n") == 1 and len(errors) < 600


def test_a_configuration_with_a_key_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yaml").write_text("way: 5\nshot: 1\nway: 10\n")
    assert run(["train", "--config", f"{tmp_path}/c.yaml", "--show-settings"]) == 2
    assert "line 3: the key 'way' is there twice" in capsys.readouterr().err

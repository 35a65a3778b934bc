"""What the system, the terminal or a careless hand can do to a command: one line and exit code 2, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from dmin.cli.app import run

EXAMPLES = {"refund": ["I want my money back", "return what I paid"], "parcel": ["where is my order", "it is late"]}
LONG = "x" * 5000


@pytest.fixture
def examples(tmp_path: Path) -> str:
    path = tmp_path / "examples.json"
    path.write_text(json.dumps(EXAMPLES))
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--set", "a=["], "--set 'a=[': the value is not valid YAML"),
        (["train", "--set", "a=" + "[" * 5000], "nested too deeply"),
        (["train", "--set", f"way={'9' * 5000}"], "--set"),
        (["train", "--device", "foo", "--episodes", "1"], "no such device: 'foo'"),
        (["train", "--device", "cuda:77", "--episodes", "1"], "is not there on this machine"),
        (["train", "--seed", "-1"], "'--seed'"),
        (["train", "--split-seed", "-1"], "'--split-seed'"),
        (["train", "--episodes", "0"], "'--episodes'"),
        (["train", "--data", LONG], "unknown data set"),
        (["train", "--data", "~nouser/x.csv"], "'~nouser/x.csv': there is no folder of this user"),
        (["train", "--encoder", "~nouser/x"], "there is no folder of this user"),
        (["train", "--encoder", "/" + LONG], "too long"),
        (["evaluate", "~nouser/x"], "there is no folder of this user"),
        (["evaluate", LONG], "too long"),
        (["evaluate", ".", "--episodes", "0"], "'--episodes'"),
        (["evaluate", ".", "--queries", "-3"], "'--queries'"),
        (["figure", "tsne", ".", "--seed", "-1"], "'--seed'"),
        (["figure", "confusion", ".", "--episodes", "0"], "'--episodes'"),
        (["ablate", "--episodes", "0"], "'--episodes'"),
        (["compare", "--episodes", "0"], "--episodes"),
        (["compare", "--seeds", "-2"], "--seeds"),
        (["demo", "--episodes", "0"], "'--episodes'"),
        (["classify", "--examples", LONG + ".csv", "hello"], "too long"),
        (["classify", "--examples", "{examples}", "--model", "~nouser", "hello"], "there is no folder of this user"),
        (["classify", "--examples", "{examples}", "--device", "foo", "hello"], "no such device: 'foo'"),
        (["classify", "--examples", "{examples}", "--reject", "50", "hello"], "a number between -1 and 1"),
        (["assess", "--examples", "{examples}", "--test", LONG + ".csv"], "too long"),
        (["assess", "--examples", "{examples}", "--test", "{examples}", "--out", "/dev/full/x"], "/dev/full"),
        (["assess", "--examples", "{examples}", "--test", "{examples}", "--out", LONG], "too long"),
        (["model", "info", LONG], "too long"),
        (["model", "info", "~nouser"], "there is no folder of this user"),
        (["model", "card", ".", "--notes", "{binary}"], "head.json"),
        (["--plugin", "~nouser/x.py", "data", "list"], "there is no folder of this user"),
        (["data", "info", LONG], "unknown data set"),
        (["data", "info", "\x1b[2J"], r"\x1b[2J"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, list) else "",
)
def test_one_line_and_code_two(
    arguments: list[str],
    message: str,
    examples: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x80")
    given = [word.format(examples=examples, binary=tmp_path / "binary") for word in arguments]
    assert run(given) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: ") and errors.count("\n") == 1 and len(errors) < 2500
    assert message.lower() in errors.lower() and "\x1b" not in errors


def test_notes_that_are_no_text_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dmin.model.folder import shipped_head

    (tmp_path / "notes").write_bytes(b"\xff\xfe\x00\x80")
    out = ["--out", str(tmp_path / "head"), "--notes", str(tmp_path / "notes")]
    assert run(["model", "head", str(shipped_head()), *out]) == 2
    errors = capsys.readouterr().err
    assert "a Markdown file in UTF-8 is needed" in errors and errors.count("\n") == 1


def command(
    *words: str, environment: Mapping[str, str | None], stdout: int = subprocess.PIPE, program: str = ""
) -> subprocess.CompletedProcess[bytes]:
    """`dmin` in a process of its own; an environment variable of None is taken away."""
    merged = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    clean = {key: value for key, value in merged.items() if value is not None}
    call = [sys.executable, *(["-c", program] if program else ["-m", "dmin"]), *words]
    return subprocess.run(call, env=clean, stdout=stdout, stderr=subprocess.PIPE, check=False)


def test_a_full_device_as_output() -> None:
    """The output is small, so that it is written only when the command ends."""
    with Path("/dev/full").open("wb") as full:
        done = command("--version", environment={}, stdout=full.fileno())
    assert done.returncode == 2 and done.stderr == b"error: cannot write to standard output: No space left on device\n"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_of_the_terminal(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps({**EXAMPLES, "日本": ["où est ma commande"]}), encoding="utf-8")
    arguments = ["data", "check", str(tmp_path / "t.json"), "--no-meaning"]
    done = command(*arguments, environment={"PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0"})
    assert done.returncode == 0 and done.stderr == b""
    shown = done.stdout.decode(
        "utf-8" if encoding == "ascii" else encoding
    )  # typer writes UTF-8 where ASCII is asked for
    assert (r"\u65e5\u672c (1)" if encoding == "latin-1" else "日本 (1)") in shown


HOMELESS = """
import os, pwd, sys
def nobody(*_): raise KeyError("getpwuid(): uid not found: 54321")
pwd.getpwuid = pwd.getpwnam = nobody
from dmin.cli.app import main
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_user_without_a_name_and_a_home(examples: str) -> None:
    """As in a container that runs under a uid of its own: it classifies; for cached vectors it is told what to set."""
    missing = {"HOME": None, "XDG_CACHE_HOME": None, "DMIN_CACHE": None, "USER": None, "LOGNAME": None}
    done = command("classify", "--examples", examples, "give my money back", environment=missing, program=HOMELESS)
    assert done.returncode == 0 and done.stdout.startswith(b"refund\t"), done.stderr
    done = command("data", "cache", environment=missing, program=HOMELESS)
    assert done.returncode == 2 and b"set DMIN_CACHE or HOME to a folder" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_cache_that_cannot_be_read_is_only_slower(
    tiny_encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dmin.encoder import Encoder, VectorCache

    encoder, cache = Encoder(str(tiny_encoder_folder), device="cpu"), VectorCache(tmp_path / "cache")
    expected = cache.encode(encoder, ["a", "b"])

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    for name in ("glob", "unlink"):
        with monkeypatch.context() as patched:
            patched.setattr(Path, name, refuse)
            assert (cache.encode(encoder, ["a", "b"]) == expected).all()
    monkeypatch.setattr(os, "utime", refuse)
    assert (cache.encode(encoder, ["a", "b"]) == expected).all()


CONTROL = "\x1b[2J\x07evil\u202e"


def test_control_characters_reach_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In labels and in texts, through every command that prints them."""
    labelled = {f"one{CONTROL}": [f"my money back{CONTROL}", "return"], f"two{CONTROL}": ["my order", f"late{CONTROL}"]}
    (tmp_path / "e.json").write_text(json.dumps(labelled))
    rows = [{"text": f"money{CONTROL}", "label": f"two{CONTROL}"}, {"text": "my order", "label": f"two{CONTROL}"}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    examples, test = str(tmp_path / "e.json"), str(tmp_path / "t.jsonl")
    from dmin import FewShotClassifier

    classifier = FewShotClassifier(device="cpu").fit(labelled)
    classifier.save(tmp_path / "saved")
    for arguments in (
        ["classify", "--examples", examples, f"where is it{CONTROL}"],
        ["classify", "--examples", examples, "--explain", f"where is it{CONTROL}"],
        ["classify", "--examples", examples, "--top-k", "2", "where is it"],
        ["assess", "--examples", examples, "--test", test, "--out", str(tmp_path / "out")],
        ["data", "check", examples],
        ["data", "info", examples],
        ["model", "info", str(tmp_path / "saved")],
    ):
        assert run(arguments) == 0
        printed = capsys.readouterr()
        for sign in CONTROL.replace("[2J", "").replace("evil", ""):
            assert sign not in printed.out + printed.err, arguments
        assert "evil" in printed.out or arguments[:2] == ["data", "info"]
    explained = classifier.explain(f"money{CONTROL}")
    for text in (str(explained), explained._repr_html_(), str(classifier.check())):
        assert "\x1b" not in text and "\\x1b[2J" in text
    for file in ("saved/README.md", "out/report.html"):
        assert "\x1b" not in (tmp_path / file).read_text()


def test_a_saved_classifier_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dmin import FewShotClassifier

    FewShotClassifier(device="cpu", reject=0.3).fit(EXAMPLES).save(tmp_path / "saved")
    assert run(["model", "info", str(tmp_path / "saved")]) == 0
    output = capsys.readouterr().out
    assert "saved classifier: 2 classes, 4 examples" in output and "refund: 2" in output
    assert "refused: below 0.3, as 'unknown'" in output and "method" in output

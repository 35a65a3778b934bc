"""The tutorial tells the truth: its commands run, and print what it says (numbers to the last digit but rounding)."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from dmin.cli.app import run
from tools.doc_outputs import same

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
SESSIONS = [
    block[2:].split("\n", 1)
    for block in re.findall(
        r"```sh\n(\$ dmin .*?)```", (ROOT / "docs/tutorials/inbox.md").read_text(encoding="utf-8"), re.DOTALL
    )
]


@pytest.mark.parametrize(("command", "told"), SESSIONS, ids=[command[:40] for command, _ in SESSIONS])
def test_a_session(
    command: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("intents.yaml", "mails.csv"):
        shutil.copy(ROOT / "examples/inbox" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(command)[1:]) == 0
    printed = iter(capsys.readouterr().out.splitlines())
    for line in told.splitlines():
        if line.strip() not in ("", "..."):
            assert any(same(line, found) for found in printed), line  # in order; between them anything may stand


def test_there_are_sessions_and_the_examples_are_those_of_the_page() -> None:
    assert len(SESSIONS) == 4
    page = (ROOT / "docs/tutorials/inbox.md").read_text(encoding="utf-8")
    for line in (ROOT / "examples/inbox/intents.yaml").read_text(encoding="utf-8").splitlines()[1:]:
        assert line in page


def test_the_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "examples/inbox/intents.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/tutorials/inbox.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)  # noqa: S102 - the page's own code
    inbox, loaded = names["inbox"], names["FewShotClassifier"].load("inbox")
    assert inbox.predict(["thank you, you are great"]).tolist() == ["a human"]
    assert {"job_application", "broken_item"} <= set(loaded.classes_)

"""What `make release-check` relies on, and the README's example, which it runs from the wheel."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dmin.version import __version__
from tools.lock import read_pins
from tools.release_check import (
    SDIST_FILES,
    WHEEL_FILES,
    bill_of_materials,
    missing,
    promised_lines,
    python_example,
    run_example,
)

ROOT = Path(__file__).parent.parent


def test_the_files_that_a_release_must_hold_are_in_the_tree() -> None:
    assert [name for name in WHEEL_FILES if not (ROOT / "src" / name).is_file()] == []
    assert [name for name in SDIST_FILES if not (ROOT / name).is_file()] == []


def test_a_wheel_without_the_typing_marker_is_noticed() -> None:
    assert missing(WHEEL_FILES, [name for name in WHEEL_FILES if "py.typed" not in name]) == ["dmin/py.typed"]


def test_the_first_python_block_is_the_example() -> None:
    page = "```sh\nls\n```\n\n```python\nprint([1])  # [1]\n```\n\n```python\nno\n```\n"
    assert python_example(page) == "print([1])  # [1]\n"
    assert promised_lines(python_example(page)) == ["[1]"]
    with pytest.raises(ValueError, match="no ```python block"):
        python_example("nothing here")


def test_an_example_that_fails_or_prints_something_else_ends_the_check(tmp_path: Path) -> None:
    python = Path(sys.executable)
    assert run_example(python, "print([1])  # [1]\n", tmp_path) == "[1]\n"
    with pytest.raises(SystemExit, match=r"did not print '\[2\]'"):
        run_example(python, "print([1])  # [2]\n", tmp_path)
    with pytest.raises(SystemExit, match="ended with code 1"):
        run_example(python, "raise ValueError\n", tmp_path)


@pytest.mark.slow
def test_the_example_of_the_readme_prints_what_it_promises(tmp_path: Path) -> None:
    code = python_example((ROOT / "README.md").read_text(encoding="utf-8"))
    promised = promised_lines(code)
    assert promised
    script = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n{code}"
    printed = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(promised) <= set(printed.stdout.splitlines())


def test_the_citation_names_this_version_and_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == __version__
    assert citation["references"][0]["doi"] == "10.18653/v1/2020.acl-main.102"


def test_the_workflow_runs_the_targets_on_the_versions_of_the_metadata() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    steps = [step.get("run") for job in workflow["jobs"].values() for step in job["steps"]]
    assert {"make test", "make docs", "make release-check"} <= set(steps)
    metadata = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    supported = re.findall(r"Python :: (3\.\d+)", metadata)
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == supported


def test_the_hooks_call_the_tools_of_make_lint() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    called = {hook["entry"].split()[0] for hook in hooks}
    assert called == {".venv/bin/ruff", ".venv/bin/lint-imports", ".venv/bin/mypy"}


@pytest.mark.slow
def test_the_bill_of_materials_names_every_locked_package(tmp_path: Path) -> None:
    path = bill_of_materials(tmp_path, "0.0")
    named = {part["name"]: part["version"] for part in json.loads(path.read_text())["components"]}
    assert named["numpy"] == read_pins(ROOT / "constraints.txt")["numpy"]
    assert len(named) == (ROOT / "requirements.lock").read_text().count("==")

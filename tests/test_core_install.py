"""What `pip install dmin` brings is enough: a wheel in an environment without torch, and the same answers under torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmin import FewShotClassifier

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow

PROGRAM = """
import importlib.util, json, sys
from dmin import FewShotClassifier
from dmin.errors import ConfigError

examples = {
    "refund": ["I want my money back", "please return what I paid", "when do I get reimbursed"],
    "parcel": ["where is my order", "my package has not arrived"],
}
texts = ["I want my money", "has the parcel been sent", "play a song", "the quadratic formula"]
classifier = FewShotClassifier(reject="auto").fit(examples)
first = classifier.predict(texts[:2]).tolist()
shares = [share.text for share in classifier.explain(texts[0]).examples]
threshold = classifier.threshold_
classifier.add_class("music", ["play some jazz", "put on a song"]).set_params(reject=0.45)
classifier.save(sys.argv[1], with_encoder=True)
loaded = FewShotClassifier.load(sys.argv[1])
assert (loaded.decision_function(texts) == classifier.decision_function(texts)).all()
try:
    FewShotClassifier("dmin-plus").fit(examples)
    refused = ""
except ConfigError as error:
    refused = str(error)
heavy = ["torch", "transformers", "accelerate", "sklearn", "scipy", "matplotlib", "pandas"]
print(json.dumps({
    "first": first, "threshold": threshold, "shares": shares, "answers": loaded.predict(texts).tolist(), "refused": refused,
    "scores": loaded.decision_function(texts).tolist(), "probabilities": loaded.predict_proba(texts).tolist(),
    "installed": [name for name in heavy if importlib.util.find_spec(name)],
}))
"""


def run(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds a fresh wheel and what it asks for; skipped where pip finds no packages."""
    folder = tmp_path_factory.mktemp("core")
    built = run(
        sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder / "dist", ROOT,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    found = folder / "venv" / "bin" / "python"
    constraints = ("--constraint", ROOT / "constraints.txt")
    probe = run(found, "-m", "pip", "download", "--no-deps", "--dest", folder / "probe", *constraints, "PyYAML")
    if probe.returncode:
        pytest.skip("pip finds no packages here (no network, no index): the core install cannot be made")
    installed = run(found, "-m", "pip", "install", "--prefer-binary", *constraints, wheel)
    assert installed.returncode == 0, installed.stderr
    checked = run(found, "-m", "pip", "check")
    assert checked.returncode == 0, checked.stdout
    return found


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables without those that would lead back to this repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DMIN_"))}
    return {**kept, "HF_HUB_OFFLINE": "1", "DMIN_CACHE": str(tmp_path_factory.mktemp("cache"))}


def test_the_core_install_does_everything_and_torch_agrees(
    python: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    program, saved = tmp_path / "program.py", tmp_path / "saved"
    program.write_text(PROGRAM, encoding="utf-8")
    done = run(python, "-I", program, saved, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["installed"] == [] and -1 < found["threshold"] < 1
    assert found["first"] == ["refund", "parcel"] and "I want my money back" in found["shares"]
    assert found["answers"][:3] == ["refund", "parcel", "music"] and found["answers"][3] == "unknown"
    assert "pip install 'dmin[train]'" in found["refused"]

    texts = ["I want my money", "has the parcel been sent", "play a song", "the quadratic formula"]
    here = FewShotClassifier.load(saved, backend="torch")
    assert np.allclose(here.decision_function(texts), found["scores"], atol=1e-5)
    assert np.allclose(here.predict_proba(texts), found["probabilities"], atol=1e-5)
    assert here.predict(texts).tolist() == found["answers"]


def test_the_command_answers_and_names_the_extra(python: Path, environment: dict[str, str], tmp_path: Path) -> None:
    examples = tmp_path / "examples.json"
    examples.write_text(json.dumps({"refund": ["I want my money back"], "parcel": ["where is my order"]}))
    done = run(
        python, "-I", "-m", "dmin", "classify", "--examples", examples, "please return what I paid", env=environment
    )
    assert done.returncode == 0 and done.stdout.startswith("refund\t"), done.stderr
    for arguments in (["train", "--data", "starter"], ["compare", "--data", "starter"]):
        refused = run(python, "-I", "-m", "dmin", *arguments, cwd=tmp_path, env=environment)
        assert refused.returncode == 2, (arguments, refused.stdout, refused.stderr)
        assert refused.stderr.count("\n") == 1 and "pip install 'dmin[" in refused.stderr

"""The crash matrix: training and classifying are killed at points where they change the disk, and go on.

With the kills of `tests/files/test_folder.py` and `tests/classifier/test_saves.py`, 200 under DMIN_STRESS=1, a tenth in CI.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from dmin import FewShotClassifier
from dmin.files import check_manifest
from tests.files.killing import Forks, spread
from tests.training.runs import command

pytestmark = pytest.mark.slow
STRESS = bool(os.environ.get("DMIN_STRESS"))
FIXTURES = Path(__file__).parent / "fixtures" / "version-0.1"

SETUP = """
import os, sys, torch, transformers, accelerate, sklearn
torch.set_num_threads(1)
import dmin.cli.app, dmin.classifier, dmin.evaluation, dmin.training
"""
# One command in a child: `sys.argv` holds the folder of the cache, then the command.
WORK = """
os.environ["DMIN_CACHE"] = sys.argv[1]
start()
code = dmin.cli.app.run(sys.argv[2:])
assert code == 0, code
"""


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder; of metrics, all but the times."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    if "metrics.jsonl" in found:
        lines = [json.loads(line) for line in found["metrics.jsonl"].splitlines()]
        found["metrics.jsonl"] = json.dumps([{**line, "time": 0} for line in lines]).encode()
    return found


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    found = Forks(SETUP)
    yield found
    found.close()


@pytest.mark.parametrize("start", ["nothing", "an older run"])
def test_a_killed_training_goes_on_to_the_same_bytes(
    forks: Forks, words_file: Path, tiny_encoder_folder: Path, tmp_path: Path, start: str
) -> None:
    """Each kill is followed by --resume, or the same command where nothing was begun; the run folder ends the same."""

    def train(name: str, *options: str, at: int = 0) -> int:
        more = ["--episodes", "20", "--set", "test_episodes=2", "--way", "2", "--overwrite", *options]
        arguments = command(words_file, tiny_encoder_folder, tmp_path / name / "run", *more)
        return forks.run(WORK, [str(tmp_path / name / "cache"), *arguments], at)

    def prepare(name: str) -> None:
        if start == "an older run":
            shutil.copytree(tmp_path / "older", tmp_path / name)

    if start == "an older run":
        train("older", "--seed", "5")
    prepare("whole")
    total = train("whole")
    expected = files(tmp_path / "whole" / "run")
    assert total > 100 and {"config.yaml", "metrics.jsonl", "summary.json", "model/manifest.json"} <= set(expected)
    for point in spread(total, 30 if STRESS else 3):
        name = f"kill{point}"
        out = tmp_path / name / "run"
        prepare(name)
        assert train(name, at=point) == -1
        if (out / "model").exists():  # a model is whole, of the older run or of this one
            check_manifest(out / "model", "model")
        if (out / "config.yaml").is_file() and "\nseed: 0\n" in (out / "config.yaml").read_text():
            forks.run(WORK, [str(tmp_path / name / "cache"), "train", "--resume", "--out", str(out)])
        else:
            train(name)
        found = {key: value for key, value in files(out).items() if not key.endswith(".part")}
        differing = [key for key in {*found, *expected} if found.get(key) != expected.get(key)]
        assert not differing, f"killed at call {point} of {total}"


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_killed_classification_goes_on_to_the_same_bytes(forks: Forks, tmp_path: Path, kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # (it is of version 0.1)
        FewShotClassifier.load(FIXTURES / "classifier-run-dmin", device="cpu").save(tmp_path / "saved")
    rows = [json.dumps({"text": f"where is my parcel {number}", "id": number}) for number in range(600)]
    (tmp_path / "texts.jsonl").write_text("\n".join(rows) + "\n")

    def classify(name: str, *more: str, at: int = 0) -> int:
        output = tmp_path / name / f"answers.{kind}"
        output.parent.mkdir(exist_ok=True)
        words = ["classify", "--model", tmp_path / "saved", "--input", tmp_path / "texts.jsonl", "--output", output]
        return forks.run(WORK, [str(tmp_path / "cache"), *map(str, words), "--device", "cpu", *more], at)

    total = classify("whole")
    expected = (tmp_path / "whole" / f"answers.{kind}").read_bytes()
    unfinished = 0
    for point in spread(total, 14 if STRESS else 3):
        assert classify(f"kill{point}", at=point) == -1
        answers = tmp_path / f"kill{point}" / f"answers.{kind}"
        if not answers.exists():
            unfinished += 1
            classify(f"kill{point}", "--resume")
        assert answers.read_bytes() == expected, f"killed at call {point} of {total}"
    assert unfinished

"""The crash matrix: training, classifying and labelling are killed at points where they change the disk, and go on.

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


# One labelling session in a child: `sys.argv` holds the cache, the keys, where the output goes, then the command.
LABEL = """
os.environ["DMIN_CACHE"] = sys.argv[1]
sys.stdin, sys.stdout = open(sys.argv[2]), open(sys.argv[3], "a", buffering=1)
start()
code = dmin.cli.app.run(sys.argv[4:])
assert code == 0, code
"""


def test_a_killed_labelling_session_loses_no_answer_and_goes_on(forks: Forks, tmp_path: Path) -> None:
    """What was shown as answered is in the journal after a kill; the same command then ends with a saved classifier."""
    texts = [f"{word} number {number}" for word in ("parcel", "refund", "password") for number in ("one", "two", "six")]
    (tmp_path / "pile.txt").write_text("\n".join(texts) + "\n")

    def label(name: str, skipped: int = 0, at: int = 0) -> int:
        out = tmp_path / name
        out.mkdir(exist_ok=True)
        (out / "keys.txt").write_text("".join(f"n\nclass {number % 3}\n" for number in range(skipped, 6)) + "q\n")
        words = ["label", "--input", tmp_path / "pile.txt", "--out", out / "session"]
        places = [out / "cache", out / "keys.txt", out / "shown.txt"]
        return forks.run(LABEL, [*map(str, places), *map(str, words)], at)

    def answers(name: str) -> list[tuple[str, str]]:
        path = tmp_path / name / "session" / "session.jsonl"
        lines = path.read_text().splitlines(keepends=True)[1:] if path.is_file() else []
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        return [(entry["text"], entry["label"]) for entry in found]

    total = label("whole")
    assert [name for _, name in answers("whole")] == [f"class {number % 3}" for number in range(6)]
    for point in spread(total, 14 if STRESS else 4):
        name = f"kill{point}"
        assert label(name, at=point) == -1
        shown = (tmp_path / name / "shown.txt").read_text().count("  -> ")
        kept = answers(name)
        assert shown <= len(kept) <= shown + 1, f"killed at call {point} of {total}"
        label(name, skipped=len(kept))
        assert answers(name)[: len(kept)] == kept and len(answers(name)) == 6
        saved = FewShotClassifier.load(tmp_path / name / "session" / "classifier")
        assert sorted(saved.classes_) == ["class 0", "class 1", "class 2"]
        assert sorted(text for rows in saved.examples_.values() for text in rows) == sorted(
            text for text, _ in answers(name)
        )

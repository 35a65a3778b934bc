"""Saving a classifier: killed at every point, by several writers at once, over another one, with its trained model."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dmin import FewShotClassifier
from dmin.errors import ConfigError, ModelError, StorageError
from dmin.files import MANIFEST, read_json, write_json
from tests.classifier.common import EXAMPLES, letters, quick
from tests.files.killing import Forks, spread

STRESS = bool(os.environ.get("DMIN_STRESS"))  # CI does a tenth
RUN = Path(__file__).parents[1] / "fixtures" / "version-0.1" / "run-dmin"


def made(mark: int) -> FewShotClassifier:
    """A classifier of vectors whose labels, texts and vectors all say `mark`."""
    draw = np.random.default_rng(mark)
    vectors = {f"{mark}-{name}": draw.normal(size=(3, 8)) for name in range(3)}
    return FewShotClassifier(encoder="precomputed").fit(vectors)


def mark_of(path: Path) -> int:
    """The mark of a whole classifier; a mixture of two is an error."""
    loaded = FewShotClassifier.load(path)
    (mark,) = {int(label.split("-")[0]) for label in loaded.classes_}
    expected = made(mark)
    assert loaded.examples_ == expected.examples_
    probe = np.ones((1, 8))
    assert np.array_equal(loaded.decision_function(probe), expected.decision_function(probe))
    return mark


SETUP = (
    "import sys, torch\nfrom pathlib import Path\ntorch.set_num_threads(1)\nfrom tests.classifier.test_saves import *\n"
)
SAVE = """
import dmin.files.folder as folders
if sys.argv[2] == "two renames":
    folders._exchange = lambda one, other: False
classifier = made(2)
start()
classifier.save(sys.argv[1])
"""


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    found = Forks(SETUP)
    yield found
    found.close()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["exchange", "two renames"])
def test_a_kill_at_any_point_of_a_save_leaves_a_whole_classifier(tmp_path: Path, forks: Forks, way: str) -> None:
    made(1).save(tmp_path / "count" / "saved")
    total = forks.run(SAVE, [str(tmp_path / "count" / "saved"), way])
    points = spread(total, 30 if STRESS else 4)
    for point in points:
        place = tmp_path / f"{point}"
        made(1).save(place / "saved")
        assert forks.run(SAVE, [str(place / "saved"), way], at=point) == -1
        assert mark_of(place / "saved") in (1, 2), f"killed at call {point}"
        made(3).save(place / "saved")
        assert mark_of(place / "saved") == 3
        assert [path.name for path in place.iterdir()] == ["saved"], f"killed at call {point}"


def _save_often(path: Path, first: int, times: int) -> None:
    for number in range(times):
        made(first + number).save(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_two_writers_at_once_and_readers_in_between(tmp_path: Path, kind: str) -> None:
    path, times = tmp_path / "saved", 100 if STRESS else 10
    made(0).save(path)
    start = threading.Thread if kind == "threads" else multiprocessing.get_context("spawn").Process
    writers = [start(target=_save_often, args=(path, first, times)) for first in (1000, 2000)]
    for writer in writers:
        writer.start()
    seen = []
    while any(writer.is_alive() for writer in writers):
        seen.append(mark_of(path))  # raises on a mixture
    for writer in writers:
        writer.join()
    assert seen and mark_of(path) in (1000 + times - 1, 2000 + times - 1)
    assert [found.name for found in tmp_path.iterdir()] == ["saved"]


def test_files_of_two_classifiers_do_not_mix(tmp_path: Path) -> None:
    for mark in (1, 2):
        made(mark).save(tmp_path / f"{mark}")
    for name in ("classifier.json", "support.safetensors", MANIFEST):
        shutil.copytree(tmp_path / "1", tmp_path / f"mixed-{name}")
        shutil.copyfile(tmp_path / "2" / name, tmp_path / f"mixed-{name}" / name)
        with pytest.raises(ModelError, match="damaged, or belongs to another folder"):
            FewShotClassifier.load(tmp_path / f"mixed-{name}")


def test_a_changed_or_missing_digest_is_refused(tmp_path: Path) -> None:
    made(1).save(tmp_path / "saved")
    content = (tmp_path / "saved" / "classifier.json").read_bytes()
    for at in range(0, len(content), 1 if STRESS else 10):
        flipped = bytearray(content)
        flipped[at] ^= 1 << (at % 8)
        (tmp_path / "saved" / "classifier.json").write_bytes(flipped)
        with pytest.raises(ModelError):
            FewShotClassifier.load(tmp_path / "saved")
    (tmp_path / "saved" / "classifier.json").write_bytes(content)
    assert mark_of(tmp_path / "saved") == 1
    (tmp_path / "saved" / MANIFEST).unlink()
    with pytest.raises(ModelError, match="cannot be trusted: no such file: .*manifest.json"):
        FewShotClassifier.load(tmp_path / "saved")


def test_a_trained_model_is_copied_with_a_manifest_and_without_files_of_others(tmp_path: Path) -> None:
    shutil.copytree(RUN, tmp_path / "run")
    (tmp_path / "run" / "model" / "private.txt").write_text("secret")
    with pytest.warns(UserWarning, match="saved by version 0.1"):
        classifier = FewShotClassifier(tmp_path / "run", device="cpu").fit(EXAMPLES)
    # Beside the model, in the folder whose lock the save holds: it must not wait for itself.
    classifier.save(tmp_path / "run" / "saved")
    saved = tmp_path / "run" / "saved"
    assert (saved / "model" / MANIFEST).is_file() and not (saved / "model" / "private.txt").exists()
    loaded = FewShotClassifier.load(saved, device="cpu")  # (a warning would be an error: the copy has a manifest)
    assert np.array_equal(loaded.decision_function(["money"]), classifier.decision_function(["money"]))
    loaded.add_class("new", ["brand new"]).save(saved)
    assert "new" in FewShotClassifier.load(saved, device="cpu").classes_
    (saved / "model" / "vocab.txt").write_text("[PAD]\n")  # transformers would read it
    with pytest.raises(ModelError, match=r"vocab.txt has no digest"):
        FewShotClassifier.load(saved, device="cpu")


def test_a_model_that_was_trained_anew_meanwhile_is_not_saved_with_old_vectors(tmp_path: Path) -> None:
    shutil.copytree(RUN, tmp_path / "run")
    with pytest.warns(UserWarning, match="saved by version 0.1"):
        classifier = FewShotClassifier(tmp_path / "run", device="cpu").fit(EXAMPLES)
    other = RUN.parent / "run-dmin-plus" / "model"
    for name in ("head.json", "head.safetensors"):
        shutil.copyfile(other / name, tmp_path / "run" / "model" / name)
    with pytest.raises(StorageError, match="was replaced since this classifier was fitted"):
        classifier.save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


# Nothing outside of the folder is opened by itself


@pytest.fixture
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.create_connection", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)


@pytest.mark.usefixtures("_no_network")
def test_an_encoder_that_the_folder_names_is_opened_only_if_it_is_given(
    tiny_encoder_folder: Path, tmp_path: Path
) -> None:
    classifier = FewShotClassifier(encoder=str(tiny_encoder_folder), device="cpu").fit(EXAMPLES)
    classifier.save(tmp_path / "saved")
    with pytest.raises(ConfigError, match=r"made with the encoder '.*', which it does not hold: give encoder="):
        FewShotClassifier.load(tmp_path / "saved", device="cpu")
    loaded = FewShotClassifier.load(tmp_path / "saved", device="cpu", encoder=str(tiny_encoder_folder))
    assert np.array_equal(loaded.decision_function(["money"]), classifier.decision_function(["money"]))


@pytest.mark.usefixtures("_no_network")
@pytest.mark.parametrize("field", ["model", "encoder_name"])
@pytest.mark.parametrize("name", ["someone/model", "/elsewhere", "../other"])
def test_names_in_an_older_folder_are_not_followed(tmp_path: Path, field: str, name: str) -> None:
    shutil.copytree(RUN.parent / "classifier-nearest", tmp_path / "saved")
    stored = read_json(tmp_path / "saved" / "classifier.json")
    write_json(tmp_path / "saved" / "classifier.json", stored | {field: name})
    with pytest.warns(UserWarning, match="version 0.1"), pytest.raises((ModelError, ConfigError)) as refused:
        FewShotClassifier.load(tmp_path / "saved", device="cpu")
    assert name in str(refused.value)


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown_label"):
        quick(reject=0.1, unknown_label=("a", 1)).fit(EXAMPLES).save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
    quick(reject=0.1, unknown_label=-1).fit(EXAMPLES).save(tmp_path / "saved")
    assert FewShotClassifier.load(tmp_path / "saved", encoder=letters).unknown_label == -1

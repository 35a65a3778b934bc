"""One frozen state: one snapshot per call, changes that wait only for their own classifier, copies without locks."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_validate

from dmin import FewShotClassifier
from dmin.classifier import storage
from dmin.errors import ConfigError, ModelError
from tests.classifier.common import EXAMPLES, PAIRS, Interrupting, letters, quick

TEXTS = ["some text", "money back", "rain"]
OTHERS = {"new": ["qqq", "qqz"], "newer": ["xxx", "xyz", "zzz"], "newest": ["vvv"], "last": ["www"]}


# One snapshot per call


def test_a_state_cannot_be_changed() -> None:
    state = quick().fit(EXAMPLES).state_
    for name in ("model", "knowledge", "settings"):
        with pytest.raises(FrozenInstanceError):
            setattr(state, name, None)
    with pytest.raises(FrozenInstanceError):
        state.settings.reject = 0.5  # type: ignore[misc]


@pytest.mark.parametrize("act", ["explain", "answer", "predict", "predict_proba"])
def test_an_answer_is_made_of_one_state_although_another_thread_fits_meanwhile(act: str) -> None:
    encoder = Interrupting()
    options: dict[str, Any] = {"use_names": False, "reject": "auto", "unknown_label": "?"}
    classifier = FewShotClassifier(encoder=encoder, **options).fit(EXAMPLES)
    expected = getattr(classifier, act)("my money" if act == "explain" else ["my money"])
    encoder.then = lambda: classifier.fit(OTHERS)
    found = getattr(classifier, act)("my money" if act == "explain" else ["my money"])
    assert classifier.classes_.tolist() == list(OTHERS)
    if act in ("predict", "predict_proba"):
        assert np.array_equal(found, expected)
    else:
        assert found == expected


def test_the_threshold_belongs_to_the_classes_that_it_was_found_for() -> None:
    encoder = Interrupting()
    outside = ["kkkk", "jjjj"]
    classifier = FewShotClassifier(encoder=encoder, use_names=False, reject="auto", outside=outside).fit(EXAMPLES)
    expected = classifier.threshold_
    classifier.add_class("new", ["qqq"]).remove_class("new")  # the threshold has to be found again
    encoder.then = lambda: classifier.fit(OTHERS)
    assert classifier.threshold_ == expected
    assert classifier.threshold_ == quick(reject="auto", outside=outside).fit(OTHERS).threshold_


@pytest.mark.parametrize("part", ["write_arrays", "write_json", "write_atomic"])
def test_a_change_while_saving_does_not_mix_two_states(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = quick(reject="auto", unknown_label="?").fit(EXAMPLES)
    expected, classes = classifier.decision_function(TEXTS), classifier.classes_.tolist()
    write = getattr(storage, part)

    def change_first(*arguments: Any) -> None:
        classifier.set_params(unknown_label="other").fit(OTHERS)
        write(*arguments)

    monkeypatch.setattr(storage, part, change_first)
    classifier.save(tmp_path / "saved")
    loaded = FewShotClassifier.load(tmp_path / "saved", encoder=letters)
    assert loaded.classes_.tolist() == classes and loaded.unknown_label == "?"
    assert np.array_equal(loaded.decision_function(TEXTS), expected)
    assert "# Few-shot classifier of 3 classes" in (tmp_path / "saved" / "README.md").read_text()


def test_what_is_saved_is_what_was_fitted_not_what_is_set_for_the_next_fit(tmp_path: Path) -> None:
    classifier = FewShotClassifier("nearest", device="cpu").fit(EXAMPLES)
    classifier.set_params(model="default", keep_base=True).save(tmp_path / "saved")
    loaded = FewShotClassifier.load(tmp_path / "saved", device="cpu")
    assert loaded.model == "nearest" and loaded.keep_base is False and loaded.base_classes_ == []
    assert np.allclose(loaded.decision_function(TEXTS), classifier.decision_function(TEXTS), atol=1e-6)


# Parameters that take effect without a fit


def test_refusal_may_be_set_after_a_fit() -> None:
    classifier = quick().fit(EXAMPLES)
    assert classifier.threshold_ is None
    classifier.set_params(reject="auto", unknown_label="?")
    fresh = quick(reject="auto", unknown_label="?").fit(EXAMPLES)
    assert classifier.threshold_ == fresh.threshold_ is not None
    assert classifier.predict(["qqq", *TEXTS]).tolist() == fresh.predict(["qqq", *TEXTS]).tolist()
    assert classifier.state_ is classifier.state_  # the threshold is found once
    classifier.reject = 1.0
    assert classifier.predict(TEXTS).tolist() == ["?"] * 3
    classifier.reject = "maybe"  # type: ignore[assignment]
    with pytest.raises(ConfigError, match="reject='maybe'"):
        classifier.predict(TEXTS)


def test_descriptions_may_be_set_after_a_fit() -> None:
    classifier = quick().fit(EXAMPLES)
    classifier.set_params(descriptions={"C3": "zzz qqq"}).add_class("C3")
    assert classifier.predict(["zzz qqq"]).tolist() == ["C3"]


def test_opening_ahead_of_a_fit_loads_the_model_once() -> None:
    classifier = FewShotClassifier("nearest", device="cpu").open()
    encoder = classifier.encoder_
    with pytest.raises(NotFittedError, match="knows no class yet"):
        classifier.predict(TEXTS)
    assert encoder is not None and classifier.fit(EXAMPLES).encoder_ is encoder
    with pytest.raises(ModelError, match="no such run or model folder"):
        FewShotClassifier("missing/", device="cpu").open()


# Locks


class Slow:
    """An encoder that stops until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, texts: Sequence[str]) -> Any:
        self.begun.set()
        assert self.go.wait(60)
        return letters(texts)


def test_a_fit_holds_up_neither_another_classifier_nor_a_prediction() -> None:
    slow, done = Slow(), threading.Event()
    one, other = FewShotClassifier(encoder=slow, use_names=False), quick()
    first = threading.Thread(target=one.fit, args=(EXAMPLES,))
    first.start()
    assert slow.begun.wait(60)

    def act() -> None:
        other.fit(EXAMPLES).add_class("new", ["qqq"]).predict(TEXTS)
        done.set()

    second = threading.Thread(target=act)
    second.start()
    passed = done.wait(30)
    slow.go.set()
    first.join()
    second.join()
    assert passed and other.classes_.tolist() == [*EXAMPLES, "new"] and one.classes_.tolist() == list(EXAMPLES)


def test_two_changes_of_one_classifier_wait_for_each_other() -> None:
    slow = Slow()
    slow.go.set()
    classifier = FewShotClassifier(encoder=slow, use_names=False).fit({"a": ["aaa"], "b": ["bbb"]})
    slow.go.clear()
    slow.begun.clear()
    threads = [threading.Thread(target=classifier.add_class, args=(name, [name * 3])) for name in "cd"]
    for thread in threads:
        thread.start()
    assert slow.begun.wait(60)
    slow.go.set()
    for thread in threads:
        thread.join()
    assert sorted(classifier.classes_) == list("abcd")


FORK = """
import os, signal, sys, threading
import torch
torch.set_num_threads(1)
from tests.classifier.common import EXAMPLES, quick
from tests.classifier.test_state import Slow
from dmin import FewShotClassifier

slow = Slow()
slow.go.set()
classifier = FewShotClassifier(encoder=slow, use_names=False).fit(EXAMPLES)
slow.go.clear()
slow.begun.clear()
worker = threading.Thread(target=classifier.add_class, args=("slow", ["sss"]), daemon=True)
worker.start()
assert slow.begun.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(30)  # a child that hangs is killed
    slow.go = threading.Event()  # (the parent's may have been forked in the middle of a wait, its lock held)
    slow.go.set()
    classifier.add_class("new", ["qqq"])
    os._exit(0 if classifier.classes_.tolist() == [*EXAMPLES, "new"] else 1)
_, status = os.waitpid(child, 0)
slow.go.set()
worker.join(60)  # (torch aborts a process that ends while a thread is inside of it)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.slow
def test_a_child_forked_in_the_middle_of_a_change_can_change_its_own_copy() -> None:
    found = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr


# Copies


@pytest.fixture(scope="module")
def fitted() -> FewShotClassifier:
    classifier = FewShotClassifier(device="cpu", reject="auto", unknown_label="?").fit(EXAMPLES)
    classifier.predict(TEXTS)  # what scoring keeps, and the hooks of transformers, must not stand in the way
    return classifier


def pickled(classifier: FewShotClassifier) -> Any:
    return pickle.loads(pickle.dumps(classifier))  # noqa: S301 (made here)


def by_joblib(classifier: FewShotClassifier, folder: Path) -> Any:
    joblib.dump(classifier, folder / "classifier.joblib")
    return joblib.load(folder / "classifier.joblib")


@pytest.mark.parametrize(
    "copied",
    [
        lambda classifier, _: pickled(classifier),
        lambda classifier, _: copy.deepcopy(classifier),
        lambda classifier, _: copy.copy(classifier),
        by_joblib,
    ],
    ids=["pickle", "deepcopy", "copy", "joblib"],
)
def test_a_fitted_default_classifier_can_be_copied(fitted: FewShotClassifier, copied: Any, tmp_path: Path) -> None:
    other = copied(fitted, tmp_path)
    assert other.get_params() == fitted.get_params() and other.threshold_ == fitted.threshold_
    assert np.array_equal(other.decision_function(TEXTS), fitted.decision_function(TEXTS))
    assert other.predict(TEXTS).tolist() == fitted.predict(TEXTS).tolist()
    other.add_class("music", ["play a song"])
    assert "music" in other.classes_ and "music" not in fitted.classes_


def test_a_pickle_carries_the_encoder_by_name_and_a_deep_copy_shares_it(fitted: FewShotClassifier) -> None:
    assert len(pickle.dumps(fitted)) < 1_000_000
    assert copy.deepcopy(fitted).encoder_ is fitted.encoder_


def test_clones_know_nothing_and_cross_validation_gives_its_estimators_back() -> None:
    assert not hasattr(clone(quick().fit(EXAMPLES)), "classes_")
    texts, labels = [text for text, _ in PAIRS] * 2, [label for _, label in PAIRS] * 2
    found = cross_validate(FewShotClassifier(device="cpu"), texts, labels, cv=2, return_estimator=True)
    for estimator in found["estimator"]:
        again = pickled(estimator)
        assert np.array_equal(again.decision_function(TEXTS), estimator.decision_function(TEXTS))


def test_vectors_and_labels_of_any_kind_can_be_pickled() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 1.0]])
    classifier = FewShotClassifier(encoder="precomputed").fit({("a", 1): vectors[:1], ("b", 2): vectors[1:]})
    again = pickled(classifier)
    assert list(again.predict(vectors)) == [("a", 1), ("b", 2)]
    again.add_examples(("a", 1), vectors[:1] + 0.1).remove_example(("a", 1), vectors[0])
    assert len(again.examples_["a", 1]) == 1


def test_a_pickle_is_refused_by_another_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    content = pickle.dumps(FewShotClassifier("nearest", encoder="minilm", device="cpu").fit(EXAMPLES))
    monkeypatch.setattr("dmin.encoder.Encoder.fingerprint", "another")
    with pytest.raises(ModelError, match="made by another encoder"):
        pickle.loads(content)  # noqa: S301 (made above)


def test_a_warning_points_to_the_line_that_called() -> None:
    contradictory = {"a": ["same", "x"], "b": ["same", "y"]}
    for act in (quick().fit, quick().partial_fit):
        with pytest.warns(UserWarning, match="stands under two classes") as warned:
            act(contradictory)
        assert warned[0].filename == __file__

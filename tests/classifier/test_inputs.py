"""Vectors in place of texts, and scikit-learn's own checks, which need them."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dmin import FewShotClassifier
from dmin.errors import ConfigError, DataError, ModelError

X = np.array([[1.0, 0.0, 0.1], [0.9, 0.1, 0.0], [0.0, 1.0, 0.1], [0.1, 0.9, 0.0]])
Y = ["a", "a", "b", "b"]
TWO_COLUMNS = "decision_function gives one column per class, also for two classes: each is a cosine that stands alone"


def precomputed(**options: Any) -> FewShotClassifier:
    return FewShotClassifier(encoder="precomputed", **options)


@parametrize_with_checks(
    [precomputed()],
    expected_failed_checks=lambda _: {
        "check_classifiers_classes": TWO_COLUMNS,
        "check_classifiers_train": TWO_COLUMNS,
        "check_decision_proba_consistency": TWO_COLUMNS,
    },
)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


def test_vectors_classify() -> None:
    classifier = precomputed().fit(X, Y)
    assert classifier.predict([[2.0, 0.1, 0.0], [0.0, 3.0, 0.0]]).tolist() == ["a", "b"]
    assert classifier.n_features_in_ == 3 and classifier.encoder_ is None
    classifier.add_class("c", [[0.0, 0.0, 1.0]])
    assert classifier.predict([[0.1, 0.0, 1.0]]).tolist() == ["c"]
    mapped = precomputed().fit({"a": X[:2], "b": X[2:]})
    assert np.allclose(mapped.decision_function(X), classifier.decision_function(X)[:, :2], atol=1e-6)
    assert classifier.explain(X[0]).label == "a"


def test_wrong_vectors_change_nothing() -> None:
    classifier = precomputed().fit(X, Y)
    before = classifier.decision_function(X)
    for act, error, message in (
        (
            lambda: classifier.add_class("c", [[1.0, 2.0]]),
            DataError,
            "2 features, but FewShotClassifier is expecting 3",
        ),
        (lambda: classifier.add_class("c", [[1.0, np.nan, 0.0]]), ValueError, "NaN"),
        (lambda: classifier.predict(["text"]), ValueError, "could not convert|Expected 2D"),
        (lambda: precomputed(use_names=True).fit(X, Y), ConfigError, "names are texts"),
    ):
        with pytest.raises(error, match=message):
            act()
    assert np.array_equal(classifier.decision_function(X), before)


def test_a_label_with_white_space_around_it_is_refused_as_files_are_trimmed() -> None:
    from tests.classifier.common import EXAMPLES, quick

    line = "label 'refund ' begins or ends with white space: use 'refund'"
    with pytest.raises(DataError, match=line):
        quick().fit({**EXAMPLES, "refund ": ["x"]})
    with pytest.raises(DataError, match=line):
        quick().fit(["a", "b"], ["one", "refund "])
    classifier = quick().fit(EXAMPLES)
    with pytest.raises(DataError, match=line):
        classifier.add_class("refund ", ["x"])
    with pytest.raises(DataError, match=line):
        classifier.partial_fit(["x"], ["refund "])
    with pytest.raises(TypeError, match="a list of texts is needed"):
        quick().fit({**EXAMPLES, "more": {"texts": ["x"]}})


@pytest.mark.parametrize("size", [1e300, 1e20, 1.0, 1e-20, 1e-39, 1e-300])
def test_the_norm_of_a_vector_changes_no_answer(size: float) -> None:
    """The squares of such numbers leave float32's range; cosines do not depend on them."""
    plain, large = precomputed().fit(X, Y), precomputed().fit(size * X, Y)
    for asked in (X, size * X):
        assert large.predict(asked).tolist() == Y
        assert np.allclose(large.decision_function(asked), plain.decision_function(X), atol=1e-6)

    def encode(texts: Sequence[str]) -> Any:
        return size * np.array([X[int(text)] for text in texts])

    own = FewShotClassifier(encoder=encode, use_names=False).fit(["0", "1", "2", "3"], Y)
    assert own.predict(["0", "1", "2", "3"]).tolist() == Y
    large.remove_example("a", size * X[0])
    assert len(large.examples_["a"]) == 1


@pytest.mark.parametrize("reject", [None, 0.5])
def test_scores_that_are_not_finite_are_refused_not_answered(reject: float | None, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    from dmin.model.folder import shipped_head

    classifier = precomputed(reject=reject).fit(X, Y)
    entry = classifier.state_.knowledge.classes[0]
    entry.prepared[0, 0] = float("nan")
    for act in (classifier.predict, classifier.predict_proba, classifier.decision_function):
        with pytest.raises(ModelError, match="the score of text 0 is NaN or infinite"):
            act(X)
    with pytest.raises(ModelError, match="the vectors of class 'a' hold NaN or infinity"):
        pickle.loads(pickle.dumps(classifier))  # noqa: S301 (our own)

    shutil.copytree(shipped_head(), tmp_path / "head")
    tensors = load_file(tmp_path / "head/head.safetensors")
    name = next(iter(tensors))
    tensors[name].view(-1)[0] = float("inf")
    save_file(tensors, tmp_path / "head/head.safetensors")
    with pytest.raises(ModelError):
        FewShotClassifier(tmp_path / "head", device="cpu", reject=reject).fit({"a": ["x"], "b": ["y"]})


def test_an_encoder_with_damaged_weights_is_refused(tiny_encoder_folder: Path) -> None:
    classifier = FewShotClassifier(encoder=str(tiny_encoder_folder), device="cpu").fit({"a": ["x"], "b": ["y"]})
    encoder = classifier.encoder_
    assert encoder is not None
    next(encoder.network.parameters()).data.fill_(float("nan"))
    with pytest.raises(ModelError, match="gave NaN or infinity for text 0: are its weights damaged"):
        classifier.predict(["hello"])

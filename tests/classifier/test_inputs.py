"""Vectors in place of texts, and scikit-learn's own checks, which need them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dmin import FewShotClassifier
from dmin.errors import ConfigError, DataError

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

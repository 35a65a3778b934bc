"""The scikit-learn contract, and input that is refused: the error names it and nothing changes."""

from __future__ import annotations

import pickle
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dmin import FewShotClassifier
from dmin.classifier.refusal import free_label
from dmin.errors import ConfigError, DataError, UnknownNameError
from tests.classifier.common import EXAMPLES, letters, quick


def test_clone_params_and_pipelines() -> None:
    classifier = quick(reject=0.3, unknown_label="?")
    copy = clone(classifier)
    assert copy.get_params() == classifier.get_params() and not hasattr(copy, "state_")
    assert copy.set_params(reject=None).reject is None
    texts, labels = ["aaa", "aab", "bbb", "bba"] * 3, ["a", "a", "b", "b"] * 3
    assert cross_val_score(quick(), texts, labels, cv=3).mean() == 1.0
    search = GridSearchCV(quick(), {"reject": [None, 0.9999]}, cv=2).fit(texts, labels)
    assert search.best_params_ == {"reject": None}
    assert search.cv_results_["mean_test_score"].tolist() == [1.0, 0.0]  # all refused, all wrong
    pipeline = make_pipeline(FunctionTransformer(lambda x: [text.lower() for text in x]), quick())
    assert pipeline.fit(texts, labels).predict(["AAA"]).tolist() == ["a"]
    assert quick().fit(texts, labels).score(texts, labels) == 1.0


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda c: c.fit({}), DataError, "no classes"),
        (lambda c: c.fit({"a": [], "b": ["x"]}), DataError, "'a' has no example"),
        (lambda c: c.fit({"a": "text", "b": ["x"]}), TypeError, "not one string"),
        (lambda c: c.fit({"a": ["x", " "], "b": ["y"]}), DataError, "'a', example 1 is empty"),
        (lambda c: c.fit({"a": ["x", None], "b": ["y"]}), TypeError, "'a', example 1 is None"),
        (lambda c: c.fit({"a": [b"x"], "b": ["y"]}), TypeError, "example 0 is b'x'"),
        (lambda c: c.fit(["x"]), DataError, "need labels"),
        (lambda c: c.fit(["x"], ["a", "b"]), DataError, "1 texts but 2 labels"),
        (lambda c: c.fit({"a": ["x"]}, ["a"]), TypeError, "not both"),
        (lambda c: c.fit(["x", "y"], [["a", "b"], ["a"]]), TypeError, "several labels per text are not supported"),
        (lambda c: c.fit(["x", "y"], ["a", float("nan")]), DataError, "label 1 is nan"),
        (lambda c: c.fit({None: ["x"], "b": ["y"]}), DataError, "None is no label"),
        (lambda c: c.fit(["x", "y"], np.array([0.5, 1.5])), DataError, "Unknown label type: continuous"),
        (lambda c: c.fit(["x", "y"], [bytearray(b"q"), "b"]), TypeError, "must be hashable"),
        (lambda c: c.add_class("refund", ["x"]), DataError, "there already"),
        (lambda c: c.add_class("new", []), DataError, "no example and no description"),
        (lambda c: c.add_examples("refund", []), DataError, "has no example"),
        (lambda c: c.add_examples("refnd", ["x"]), KeyError, "did you mean 'refund'"),
        (lambda c: c.remove_class("refnd"), KeyError, "did you mean 'refund'"),
        (lambda c: c.remove_example("refund", "I want my money"), UnknownNameError, "did you mean"),
        (lambda c: c.remove_example("weather", "will it rain tomorrow"), DataError, "last example"),
        (lambda c: c.predict([None]), TypeError, "text 0 is None"),
        (lambda c: c.predict("hello"), TypeError, "list of texts"),
        (lambda c: c.explain(""), DataError, "text 0 is empty"),
        (lambda c: c.fit("one text", ["a"]), TypeError, "not one str"),
        (lambda c: c.fit({"a": None, "b": ["x"]}), TypeError, "class 'a': a list of texts is needed, not None"),
        (lambda c: c.add_class(["a"], ["x"]), TypeError, r"label \['a'\] \(list\): a label must be hashable"),
        (lambda c: c.remove_class(["a"]), TypeError, "must be hashable"),
        (lambda c: c.set_params(reject={"refnd": 0.5}).fit(EXAMPLES), KeyError, "did you mean 'refund'"),
        (lambda c: c.set_params(unknown_label="other").add_class("other", ["x"]), DataError, "unknown_label"),
        (lambda c: type(c)(encoder=letters, reject=5).fit(EXAMPLES), ConfigError, "between -1 and 1"),
        (lambda c: c.set_params(use_names="maybe").fit(EXAMPLES), ConfigError, "True, False or 'auto'"),
        (lambda c: c.predict_top_k(["x"], 0), DataError, "at least 1"),
    ],
)
def test_a_refused_call_changes_nothing(act: Any, error: type[Exception], message: str) -> None:
    classifier = quick().fit(EXAMPLES)
    before = classifier.decision_function(["hello"])
    with pytest.raises(error, match=message):
        act(classifier)
    assert np.array_equal(classifier.decision_function(["hello"]), before)
    if message == "there already":
        return  # before any fit it is not
    classifier = quick()
    with pytest.raises((error, NotFittedError, KeyError)):
        act(classifier)
    assert not hasattr(classifier, "classes_")
    assert len(classifier.set_params(reject=None, use_names=False).fit(EXAMPLES).classes_) == 3


def test_a_failed_fit_does_not_stand_in_the_way() -> None:
    classifier = quick()
    with pytest.raises(DataError):
        classifier.fit({"a": [" "], "b": ["x"]})
    assert classifier.fit(EXAMPLES).predict(["my money"]).shape == (1,)
    other = FewShotClassifier("nearest", device="cpu").fit(EXAMPLES).set_params(model="default")
    with pytest.raises(DataError):
        other.fit({"a": []})
    assert other.fit(EXAMPLES).state_.model.method.name == "adaptive"


def test_one_string_is_not_a_list_of_letters() -> None:
    classifier = FewShotClassifier("nearest", device="cpu").fit(EXAMPLES)
    with pytest.raises(TypeError, match="list of texts"):
        classifier.predict("abc")


def test_a_refusal_is_right_where_the_label_is_unknown() -> None:
    classifier = quick(reject=1.0, unknown_label="?").fit(EXAMPLES)
    assert classifier.predict(["hello"]).tolist() == ["?"]
    assert classifier.score(["hello"], ["?"]) == 1.0 and classifier.score(["hello"], ["refund"]) == 0.0
    assert classifier.score(["hello", "hello"], ["?", "refund"], sample_weight=[3, 1]) == 0.75


@pytest.mark.parametrize("scoring", [None, "accuracy", "f1_macro"])
def test_a_search_over_reject_finds_the_threshold(scoring: str | None) -> None:
    """Out-of-scope texts under `unknown_label` are of no class, and refusing them is right, for every scorer."""
    texts = ["aaaa", "aaab", "aaba", "bbbb", "bbba", "bbab", "zzzz", "zzzy", "zyzz"] * 2
    labels = (["a"] * 3 + ["b"] * 3 + ["other"] * 3) * 2
    thresholds = [None, -1, 0.95, 1.0]
    model = quick(unknown_label="other")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = GridSearchCV(model, {"reject": thresholds}, cv=3, scoring=scoring, error_score="raise")
        search.fit(texts, labels)
    scores = search.cv_results_["mean_test_score"]
    assert search.best_params_ == {"reject": 0.95} and search.best_score_ == 1.0
    assert np.isfinite(scores).all() and scores[0] == scores[1] < 1.0
    assert search.best_estimator_.classes_.tolist() == ["a", "b"]


def test_without_an_unknown_label_refusals_have_one_of_the_same_type() -> None:
    texts = ["aaaa", "aaab", "bbbb", "bbba"] * 3
    for labels, expected in ((["a", "a", "b", "b"] * 3, "unknown"), ([0, 0, 1, 1] * 3, -1)):
        assert quick(reject=1.0).fit(texts, labels).predict(["zzz"]).tolist() == [expected]
        scores = cross_val_score(quick(reject=0.9), texts, labels, cv=3, scoring="accuracy", error_score="raise")
        assert scores.tolist() == [1.0, 1.0, 1.0]
    assert free_label(["unknown", "b"]) == "(unknown)" and free_label([-1, 2]) == -2 and free_label(["a", 1]) is None


def test_examples_of_the_unknown_label_teach_the_automatic_threshold(tmp_path: Path) -> None:
    examples = {"a": ["aaaa", "aaab", "aaba"], "b": ["bbbb", "bbba"]}
    outside = ["zzzz", "zzzy"]
    given = quick(reject="auto", unknown_label="?").fit({**examples, "?": outside})
    other = quick(reject="auto", unknown_label="?", outside=outside).fit(examples)
    assert given.classes_.tolist() == ["a", "b"] and given.threshold_ == other.threshold_
    assert quick(reject="auto", unknown_label="?").fit(examples).threshold_ != other.threshold_
    added = quick(reject="auto", unknown_label="?").fit(examples).partial_fit(outside, ["?", "?"])
    assert added.threshold_ == other.threshold_
    assert pickle.loads(pickle.dumps(given)).threshold_ == other.threshold_  # noqa: S301 (our own)
    given.save(tmp_path / "saved")
    loaded = FewShotClassifier.load(tmp_path / "saved", encoder=letters)
    assert loaded.threshold_ == other.threshold_ and list(loaded.outside) == outside


def test_the_folder_of_a_saved_classifier_is_named_with_the_way_to_load_it(tmp_path: Path) -> None:
    quick().fit(EXAMPLES).save(tmp_path / "saved")
    with pytest.raises(ConfigError, match=r"is a saved classifier, not a model: FewShotClassifier.load\('"):
        FewShotClassifier(tmp_path / "saved").fit(EXAMPLES)


def test_the_automatic_threshold_follows_the_classes() -> None:
    classifier = FewShotClassifier("nearest", device="cpu", use_names=False, reject="auto")
    classifier.add_class("refund", EXAMPLES["refund"]).add_class("parcel", EXAMPLES["parcel"])
    first = classifier.threshold_
    classifier.add_examples("parcel", ["zebras in the zoo"])  # an outlier lowers what its own examples reach
    assert first is not None and classifier.threshold_ is not None and classifier.threshold_ < first
    fresh = FewShotClassifier("nearest", device="cpu", use_names=False, reject="auto").fit(classifier.examples_)
    assert classifier.threshold_ == pytest.approx(fresh.threshold_)


def test_two_threads_that_add_lose_nothing() -> None:
    classifier = quick()
    threads = [threading.Thread(target=classifier.add_class, args=(name, [name * 3])) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(classifier.classes_) == list("abcdefgh")


def test_bad_encoders_are_named() -> None:
    with pytest.raises(DataError, match=r"shape \(2,\)"):
        FewShotClassifier(encoder=lambda texts: np.zeros(len(texts))).fit(["a", "b"], [0, 1])
    with pytest.raises(DataError, match="NaN or infinity for text 0"):
        FewShotClassifier(encoder=lambda texts: np.full((len(texts), 3), np.nan)).fit(["a", "b"], [0, 1])
    widths = iter([4, 5])
    classifier = FewShotClassifier(encoder=lambda texts: np.ones((len(texts), next(widths)))).fit(["a", "b"], [0, 1])
    with pytest.raises(DataError, match="width 5; the classes have width 4"):
        classifier.predict(["c"])
    with pytest.raises(ConfigError, match="brings its own encoder"):
        FewShotClassifier("some/run", encoder=letters).fit(EXAMPLES)
    with pytest.raises(ConfigError, match="brings its own vectors"):
        quick(backend="onnx").fit(EXAMPLES)


def test_the_same_text_under_two_classes_is_said() -> None:
    with pytest.warns(UserWarning, match="'same' stands under two classes: 'a' and 'b'"):
        quick().fit({"a": ["same", "x"], "b": ["same", "y"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick().fit({"a": ["one", "x"], "b": ["two", "y"]})

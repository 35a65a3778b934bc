"""When a text is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dmin import FewShotClassifier
from dmin.classifier.left_out import leave_each_out
from dmin.classifier.refusal import best_cut, check_reject, column_limits
from dmin.errors import ConfigError, DataError
from dmin.model.calibration import Calibration
from tests.classifier.common import EXAMPLES, quick

KNOWN = Calibration(20.0, 0.0, 0.0, 0.1, cut=0.3, cut_per_log_example=0.1, name_weight=1.0)


def test_limits_of_every_kind() -> None:
    labels, sizes = ["a", "b"], [1, 5]
    assert column_limits(None, None, None, labels, sizes).tolist() == [-np.inf, -np.inf]
    assert column_limits(0.4, None, KNOWN, labels, sizes).tolist() == [0.4, 0.4]
    assert column_limits({"b": 0.5}, None, KNOWN, labels, sizes).tolist() == [-np.inf, 0.5]
    assert column_limits("auto", 0.6, KNOWN, labels, sizes).tolist() == [0.6, 0.6]
    own = column_limits("auto", None, KNOWN, labels, sizes)
    assert own.tolist() == pytest.approx([0.3, 0.3 + 0.1 * np.log(5)])  # the model's own cut grows with the examples


@pytest.mark.parametrize("reject", ["maybe", True, float("nan"), {"a": "x"}, [0.3]])
def test_a_reject_that_is_no_threshold_is_named(reject: object) -> None:
    with pytest.raises(ConfigError, match="a number, a number for each label, 'auto' or None"):
        check_reject(reject)


@pytest.mark.parametrize("reject", [5, -1.01, float("inf"), {"a": 0.5, "b": 50}])
def test_a_reject_that_is_no_cosine_is_named(reject: object) -> None:
    with pytest.raises(ConfigError, match="a cosine lies between -1 and 1"):
        check_reject(reject)
    with pytest.raises(ConfigError, match="a cosine lies between -1 and 1"):
        quick().fit(EXAMPLES).set_params(reject=reject).predict(["hello"])


def test_the_best_cut_divides_two_samples() -> None:
    assert best_cut(np.array([0.7, 0.8, 0.9]), np.array([0.1, 0.2])) == pytest.approx(0.45)
    assert best_cut(np.array([0.5, 0.8, 0.9]), np.array([0.1, 0.6])) == pytest.approx(0.7)


def test_an_example_is_held_against_its_class_without_it() -> None:
    classifier = quick().fit({"a": ["aaa", "aab", "aba"], "b": ["bbb"]})
    found = list(leave_each_out(classifier.state_.knowledge, classifier.state_.model))
    assert [(item.entry.label, item.row) for item in found] == [("a", 0), ("a", 1), ("a", 2)]  # "b" would be empty
    smaller = quick().fit({"a": ["aab", "aba"], "b": ["bbb"]}).decision_function(["aaa"])[0]
    assert (found[0].own, found[0].other) == pytest.approx(tuple(smaller), abs=1e-6)
    assert found[0].highest == max(smaller)


def test_auto_lets_about_nine_in_ten_pass() -> None:
    classifier = FewShotClassifier("nearest", device="cpu", use_names=False, reject="auto").fit(EXAMPLES)
    highest = [item.highest for item in leave_each_out(classifier.state_.knowledge, classifier.state_.model)]
    assert classifier.threshold_ == pytest.approx(np.quantile(highest, 0.1))


def test_auto_learns_from_out_of_scope_texts() -> None:
    outside = ["who wrote this symphony", "the capital of France", "how tall is the mountain"]
    classifier = FewShotClassifier(device="cpu", reject="auto", outside=outside, unknown_label="?").fit(EXAMPLES)
    assert classifier.predict(outside).tolist() == ["?"] * 3
    assert classifier.predict(["please give my money back"]).tolist() == ["refund"]
    with pytest.raises(DataError, match="outside holds no texts"):
        FewShotClassifier(device="cpu", reject="auto", outside=[]).fit(EXAMPLES)


def test_auto_works_class_by_class_from_nothing() -> None:
    """Without a fit there is nothing to leave out yet: the shipped head's own cut holds."""
    classifier = FewShotClassifier(device="cpu", reject="auto", unknown_label="?", use_names=False)
    classifier.add_class("refund", ["I want my money back"]).add_class("weather", ["will it rain tomorrow"])
    assert classifier.threshold_ is None
    assert classifier.predict(["give me my money back now", "a symphony in D minor"]).tolist() == ["refund", "?"]

"""Precision against coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmin import FewShotClassifier
from dmin.errors import ConfigError
from dmin.evaluation.assess import assess
from dmin.evaluation.precision import precision_curve
from tests.classifier.common import EXAMPLES
from tests.evaluation.test_assess import TEST

SCORES = st.lists(st.tuples(st.sampled_from([-0.5, 0.0, 0.1, 0.25, 0.7, 0.9]), st.booleans()), min_size=1, max_size=30)


def test_a_small_case_by_hand() -> None:
    curve = precision_curve([0.9, 0.8, 0.8, 0.3], [True, True, False, False])
    assert curve.coverage.tolist() == [0.25, 0.75, 1.0]  # equal cosines are answered together
    assert curve.precision.tolist() == pytest.approx([1.0, 2 / 3, 0.5])
    assert curve.thresholds.tolist() == pytest.approx([0.85, 0.55, -0.35])
    point = curve.at(0.6)
    assert point is not None and (point.answered, point.threshold) == (3, pytest.approx(0.55))
    assert curve.best.answered == 1 and precision_curve([0.5], [False]).at(0.1) is None
    with pytest.raises(ConfigError, match="at most 1"):
        curve.at(95)


@given(SCORES)
def test_every_point_is_what_its_threshold_gives(pairs: list[tuple[float, bool]]) -> None:
    scores, right = np.array([score for score, _ in pairs]), np.array([hit for _, hit in pairs])
    curve = precision_curve(scores, right)
    for place in range(len(curve.thresholds)):
        point = curve.point(place)
        accepted = scores >= point.threshold
        assert point.answered == accepted.sum() and point.precision == pytest.approx(right[accepted].mean())
    for target in (0.3, 0.7, 1.0):
        found = curve.at(target)
        best = max((n for n, p in zip(curve.coverage, curve.precision, strict=True) if p >= target), default=None)
        assert (found.coverage if found else None) == best


def test_the_threshold_of_an_assessment_is_in_force() -> None:
    classifier = FewShotClassifier(device="cpu").fit(EXAMPLES)
    found = assess(classifier, TEST, ["the capital of France"], target_precision=1.0)
    assert found.target is not None and found.refusing and classifier.reject is None
    answered = [answer for answer in found.answers if not answer.refused]
    assert len(answered) == found.target.answered and all(answer.right for answer in answered)
    careful = classifier.set_params(reject=found.target.threshold, unknown_label="?")
    assert careful.predict(TEST.texts).tolist() == [
        "?" if answer.refused else answer.answer for answer in found.answers[:-1]
    ]
    with pytest.raises(
        ConfigError, match="no threshold gives a precision of 100 % on these texts: the highest is 0.0 %"
    ):
        assess(classifier, type(TEST)("x", ("will it rain",), ("refund",)), target_precision=1.0)

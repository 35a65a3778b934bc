"""Accuracy, F1, calibration and separation against hand-computed cases and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from dmin.evaluation.quality import harmonic_mean, quality, reliability, separation


def test_quality_agrees_with_scikit_learn() -> None:
    random = np.random.default_rng(0)
    truth = random.integers(0, 5, 200)
    answers = np.where(random.random(200) < 0.7, truth, random.integers(0, 5, 200))
    found = quality(truth.tolist(), answers.tolist())
    assert found.accuracy == pytest.approx((truth == answers).mean())
    assert found.macro_f1 == pytest.approx(f1_score(truth, answers, average="macro"))
    assert [row.f1 for row in found.classes.values()] == sorted(row.f1 for row in found.classes.values())


def test_a_refusal_is_wrong_and_no_class_of_its_own() -> None:
    found = quality(["a", "a", "b", "b"], ["a", None, "b", "b"])
    assert found.accuracy == 0.75 and set(found.classes) == {"a", "b"}
    assert found.classes["a"].recall == 0.5 and found.classes["a"].precision == 1.0
    assert found.macro_f1 == pytest.approx((2 / 3 + 1) / 2)
    assert found.confusion["a", "None"] == 1


def test_calibration_error_by_hand() -> None:
    # Bin 0.8-0.9 with mean 0.85 and half right; bin 0.2-0.3 with mean 0.25 and none right.
    found = reliability([0.85, 0.85, 0.25, 0.25], [True, False, False, False], bins=10)
    assert found.error == pytest.approx(0.5 * 0.35 + 0.5 * 0.25)
    assert found.texts == (2, 2) and found.accuracy == (0.0, 0.5)
    assert reliability([1.0, 1.0], [True, True]).error == 0.0
    assert reliability([], []).error == 0.0


def test_separation_agrees_with_scikit_learn() -> None:
    random = np.random.default_rng(0)
    inside, outside = random.normal(1, 1, 300), random.normal(0, 1, 200)
    inside[:20] = outside[:20]  # ties
    found = separation(inside, outside)
    labels = np.concatenate([np.ones(300), np.zeros(200)])
    assert found.auroc == pytest.approx(roc_auc_score(labels, np.concatenate([inside, outside])))
    cut = max(value for value in inside if (inside >= value).mean() >= 0.95)
    assert found.fpr95 == (outside >= cut).mean()
    perfect = separation([0.9, 0.8], [0.1, 0.2])
    assert perfect.auroc == 1.0 and perfect.fpr95 == 0.0


def test_harmonic_mean() -> None:
    assert harmonic_mean(0.5, 1.0) == pytest.approx(2 / 3)
    assert harmonic_mean(0.0, 0.0) == 0.0

"""Quality of answers: accuracy and F1, calibration error, separation of known from out-of-scope texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

BINS = 15


@dataclass(frozen=True)
class ClassQuality:
    """One class: of its texts, how many were found (recall); of the answers, how many were right (precision)."""

    texts: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class Quality:
    """Answers against the truth; a refusal is an answer like any other, and wrong."""

    accuracy: float
    macro_f1: float
    classes: dict[str, ClassQuality]
    confusion: Counter[tuple[str, str]]  # (true class, answer) -> texts


def quality(truth: Sequence[Any], answers: Sequence[Any]) -> Quality:
    """Accuracy, macro-F1 over the classes of the truth, and each class by itself."""
    true, given = [str(label) for label in truth], [str(label) for label in answers]
    confusion = Counter(zip(true, given, strict=True))
    sizes, answered = Counter(true), Counter(given)
    classes = {}
    for label, size in sizes.items():
        right = confusion[label, label]
        precision = right / answered[label] if answered[label] else 0.0
        recall = right / size
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        classes[label] = ClassQuality(size, precision, recall, f1)
    accuracy = sum(confusion[label, label] for label in sizes) / max(1, len(true))
    macro = float(np.mean([found.f1 for found in classes.values()])) if classes else 0.0
    return Quality(accuracy, macro, dict(sorted(classes.items(), key=lambda item: item[1].f1)), confusion)


@dataclass(frozen=True)
class Reliability:
    """Confidence against accuracy, bin by bin; empty bins are left out."""

    error: float  # expected calibration error
    confidence: tuple[float, ...]
    accuracy: tuple[float, ...]
    texts: tuple[int, ...]


def reliability(probabilities: Any, right: Any, bins: int = BINS) -> Reliability:
    """Expected calibration error (Guo et al., 2017) of the highest probabilities.

    Args:
        probabilities: of the answer, [n].
        right: was the answer right, [n].
        bins: of equal width.
    """
    confidence, hits = np.asarray(probabilities, dtype=float), np.asarray(right, dtype=float)
    places = np.clip((confidence * bins).astype(int), 0, bins - 1)
    rows = [(confidence[places == b].mean(), hits[places == b].mean(), int((places == b).sum()))
            for b in range(bins) if (places == b).any()]  # fmt: skip
    error = sum(n * abs(mean - accuracy) for mean, accuracy, n in rows) / max(1, len(confidence))
    means, accuracies, counts = zip(*rows, strict=True) if rows else ((), (), ())
    return Reliability(float(error), tuple(map(float, means)), tuple(map(float, accuracies)), tuple(counts))


@dataclass(frozen=True)
class Separation:
    """How well the highest cosine separates texts of the classes (`in_scope`) from out-of-scope ones (`out_of_scope`)."""

    auroc: float
    fpr95: float  # FPR at 95 % TPR: out-of-scope texts accepted when 95 % of the others are
    in_scope: int  # number of texts
    out_of_scope: int


def separation(known: Any, unknown: Any) -> Separation:
    """AUROC and FPR at 95 % TPR of a score that should be higher for texts of the classes than for others."""
    from scipy.stats import rankdata

    inside, outside = np.asarray(known, dtype=float), np.asarray(unknown, dtype=float)
    ranks = rankdata(np.concatenate([inside, outside]))[: len(inside)].sum()
    area = (ranks - len(inside) * (len(inside) + 1) / 2) / (len(inside) * len(outside))
    cut = np.sort(inside)[int(np.floor(0.05 * len(inside)))]  # at least 95 % of the known lie at or above it
    return Separation(float(area), float((outside >= cut).mean()), len(inside), len(outside))


def harmonic_mean(one: float, two: float) -> float:
    """2ab / (a + b), 0 if either is 0."""
    return 2 * one * two / (one + two) if one + two else 0.0

"""The constants of `dmin.labelling.forecast` from records of simulated sessions, and the errors of the forecasts.

Constants for a set come from the eight others: ridge regression of the logit of the true accuracy, every set with the same
weight. Its intervals come from what the others' own estimates, made in the same way, miss.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from labelling_worlds import SETS

from dmin.labelling.forecast import EVERY, Constants, Signals, estimate, logit

RIDGE = 0.02


@dataclass(frozen=True)
class Point:
    """A session at one number of labels: what is known, the true accuracy, and the one with twice the labels."""

    name: str
    signals: Signals
    now: float
    double: float | None

    @property
    def slope(self) -> float | None:
        """What the logit of accuracy gains with each unit of the logarithm of labels, until their number is doubled."""
        return None if self.double is None else (logit(self.double) - logit(self.now)) / math.log(2)


def points_of(records: list[dict[str, Any]]) -> list[Point]:
    """Every tenth answer of every record, from the tenth predicted one on."""
    found = []
    for record in records:
        truth = {labels: accuracy for labels, accuracy, _ in record["truth"]}
        for labels, accuracy, agreement in record["truth"]:
            right = tuple(good for known, good in record["outcomes"] if known < labels)
            if len(right) >= EVERY:
                counts = tuple(Counter(record["bought"][:labels]).values())
                found.append(Point(record["set"], Signals(counts, agreement, right), accuracy, truth.get(2 * labels)))
    return found


def session_points(sessions: list[dict[str, Any]]) -> list[Point]:
    """Every tenth answer of the sessions that learn from unlabelled texts, which is the default."""
    found = []
    for session in [session for session in sessions if session["unlabelled"]]:
        truth = {sum(counts): accuracy for accuracy, _, counts, _ in session["truths"]}
        for accuracy, agreement, counts, predicted in session["truths"]:
            signals = Signals(tuple(counts), agreement, tuple(session["right"][:predicted]))
            found.append(Point(session["set"], signals, accuracy, truth.get(2 * signals.labels)))
    return found


def constants_of(points: list[Point]) -> Constants:
    """The weights; the spreads are left at 0."""
    level = _ridge([point.signals.features for point in points], [logit(point.now) for point in points], points)
    doubled = [point for point in points if point.slope is not None]
    slope = _ridge([p.signals.features[:3] for p in doubled], [p.slope for p in doubled], doubled)
    return Constants(tuple(level), tuple(slope), 0.0, 0.0)  # type: ignore[arg-type]


def _ridge(features: Any, target: Any, points: list[Point]) -> list[float]:
    """Weights of the features, of which the first is 1; the penalty is on standardised features."""
    rows, wanted = np.array(features, float), np.array(target, float)  # [n, f], [n]
    size = Counter(point.name for point in points)
    weight = np.array([1 / size[point.name] for point in points])
    weight /= weight.sum()
    mean = weight @ rows[:, 1:]
    spread = np.sqrt(weight @ (rows[:, 1:] - mean) ** 2)
    plain = np.concatenate([rows[:, :1], (rows[:, 1:] - mean) / spread], axis=1)  # [n, f]
    penalty = RIDGE * np.diag([0.0] + [1.0] * len(mean))
    solved = np.linalg.solve((plain.T * weight) @ plain + penalty, (plain.T * weight) @ wanted)
    slopes = solved[1:] / spread
    return [round(float(value), 3) for value in (solved[0] - slopes @ mean, *slopes)]


def with_spreads(constants: Constants, misses: dict[str, list[tuple[float, float | None]]]) -> Constants:
    """The constants with the spreads of misses (now, double) in logits, every set with the same weight."""
    now = float(np.mean([np.mean([first**2 for first, _ in part]) for part in misses.values()]))
    both = [[second**2 for _, second in part if second is not None] for part in misses.values()]
    double = float(np.mean([np.mean(part) for part in both if part]))
    slope = math.sqrt(max(double - now, 0.0025)) / math.log(2)
    return replace(constants, level_spread=round(math.sqrt(now), 3), slope_spread=round(slope, 3))


def misses_of(points: list[Point], constants: Constants) -> list[tuple[float, float | None]]:
    """What estimates miss, in logits, now and with twice the labels."""
    found = []
    for point in points:
        made = estimate(point.signals, [2 * point.signals.labels], constants)
        if made is not None:
            later = None if point.double is None else logit(made.later[0].accuracy) - logit(point.double)
            found.append((logit(made.now.accuracy) - logit(point.now), later))
    return found


def measured(records: list[dict[str, Any]]) -> tuple[dict[str, Constants], Constants]:
    """For each set the constants by the others, and the constants by all."""
    points = points_of(records)
    names = [name for name in SETS if any(point.name == name for point in points)]
    left_out = {name: constants_of([point for point in points if point.name != name]) for name in names}
    misses = {name: misses_of([p for p in points if p.name == name], left_out[name]) for name in names}
    each = {
        name: with_spreads(left_out[name], {other: part for other, part in misses.items() if other != name})
        for name in names
    }
    return each, with_spreads(constants_of(points), misses)


def errors(points: list[Point], constants: Constants) -> dict[str, list[tuple[float, bool]]]:
    """(error, is the truth within the interval) now and with twice the labels."""
    found: dict[str, list[tuple[float, bool]]] = {"now": [], "double": []}
    for point in points:
        made = estimate(point.signals, [2 * point.signals.labels], constants)
        if made is not None:
            for key, at, truth in (("now", made.now, point.now), ("double", made.later[0], point.double)):
                if truth is not None:
                    found[key].append((at.accuracy - truth, at.low <= truth <= at.high))
    return found

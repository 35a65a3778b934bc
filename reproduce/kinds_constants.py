"""The constants of the default head: general spreads and calibration, from development tasks of several kinds.

`python -m reproduce.kinds fit-constants` writes them into `src/dmin/model/default_head`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from dmin.adaptive import Head, Recipe, Spread, fit_head
from dmin.model.calibration import CLASSES, EXAMPLES, Calibration
from reproduce.kinds_data import MOST, OPEN, KindSet, generator, parts_of

SIZES = (5, 10, 20, 40, 80, 150)
SHOTS = (1, 2, 5, 10)
DRAWS = 2
QUERIES = 300
REFUSED_PARTS = (0.02, 0.03, 0.05, 0.075, 0.1)  # false rejections; not more, because users mind them

Encode = Callable[[Sequence[str]], Any]


def general_spread(encode: Encode, sets: Sequence[KindSet], most: int = MOST) -> Spread:
    """The within-class spread of at most so many texts per class, averaged over sets."""
    kinds = []
    for found in sets:
        rows = np.concatenate([np.flatnonzero(found.labels == column)[:most] for column in range(len(found.classes))])
        kinds.append((encode([found.texts[row] for row in rows]), found.labels[rows]))
    return Spread.estimate(kinds)


def spread_without(encode: Encode, name: str) -> Spread:
    """The spread that the rows of a set are measured with: it never saw that set."""
    return general_spread(encode, [KindSet(other) for other in OPEN if other not in parts_of(name)])


@dataclass(frozen=True)
class Task:
    """A development task after scoring."""

    set: str
    classes: int
    shot: int
    names: bool
    scores: Any  # [L, C]
    cosine_scores: Any  # [L, C]: without the logistic part
    labels: Any  # [L]
    known: Any  # cosine of the decided class [L]
    unknown: Any  # the same of texts of other classes [M]; none where the task has all classes
    left_out: Any  # highest cosine of each example left out of its class


def draw_tasks(encode: Encode, found: KindSet, recipe: Recipe, spread: Spread) -> list[Task]:
    """Tasks of all sizes from the development texts of a set."""
    queries, examples = found.development()
    vectors, names = encode(found.texts), encode(found.names)
    tasks = []
    for size in sorted({min(size, len(found.classes)) for size in SIZES}):
        for shot in SHOTS:
            for number in range(DRAWS):
                random = generator(found.name, "task", size, shot, number)
                order = random.permutation(len(found.classes))
                chosen, others = order[:size], order[size:]
                support = np.stack([random.permutation(examples[column])[:shot] for column in chosen])
                asked = random.permutation(np.concatenate([queries[column] for column in chosen]))[:QUERIES]
                outside = np.concatenate([queries[column] for column in others]) if len(others) else np.empty(0, int)
                outside = random.permutation(outside)[:QUERIES]
                place = {int(column): at for at, column in enumerate(chosen)}
                labels = np.array([place[int(found.labels[row])] for row in asked])
                for named in (False, True):
                    rows = vectors[support]  # [C, K, d]
                    if named:
                        rows = np.concatenate([rows, names[chosen][:, None]], axis=1)
                    shape = ([rows.shape[1]] * size, [named] * size)
                    head = fit_head(recipe, [spread], rows.reshape(-1, rows.shape[-1]), *shape)
                    tasks.append(_scored(found.name, head, shot, named, vectors[asked], labels, vectors[outside]))
    return tasks


def _scored(name: str, head: Head, shot: int, named: bool, asked: Any, labels: Any, outside: Any) -> Task:
    def decided(vectors: Any) -> tuple[Any, Any, Any]:
        rows = head.view(vectors)
        cosines = head.cosines(rows)
        scores = head.scores(rows, cosines)
        return scores, cosines, cosines[np.arange(len(cosines)), scores.argmax(axis=1)] if len(cosines) else cosines

    scores, cosines, known = decided(asked)
    unknown = decided(outside)[2] if len(outside) else np.empty(0)
    return Task(
        name, len(head.sizes), shot, named, scores, head.recipe.cosine_weight * cosines, labels, known, unknown,
        left_out(head),
    )  # fmt: skip


def left_out(head: Head) -> Any:
    """The highest cosine of each example once it has left its class; none where it is alone."""
    found = []
    cosines = head.cosines(head.rows)  # [n, C]
    for column, (size, named) in enumerate(zip(head.sizes, head.named, strict=True)):
        for row in range(size - named if size > 1 else 0):
            place = head.starts[column] + row
            others = np.delete(cosines[place], column)
            found.append(max(head.without(head.rows[place], column, row)[0], float(others.max())))
    return np.array(found)


def fit_scale(tasks: Sequence[Task], scores: Callable[[Task], Any]) -> tuple[float, float, float]:
    """(a, b, c) of softmax((a + b·ln(C / 20) + c·ln(K / 5))·score) with the least negative log-likelihood."""

    def loss(values: Any) -> float:
        total = 0.0
        for task in tasks:
            factor = (
                values[0] + values[1] * math.log(task.classes / CLASSES) + values[2] * math.log(task.shot / EXAMPLES)
            )
            total += negative_log_likelihood(max(factor, 0.01) * scores(task), task.labels)
        return total / len(tasks)

    found = minimize(loss, np.array([1.0, 0.0, 0.0]), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-5})
    return float(found.x[0]), float(found.x[1]), float(found.x[2])


def negative_log_likelihood(scores: Any, labels: Any) -> float:
    shifted = scores - scores.max(axis=1, keepdims=True)
    return float(np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(labels)), labels]))


def calibration_error(probability: Any, right: Any, bins: int = 15) -> float:
    """Expected calibration error."""
    place = np.minimum((probability * bins).astype(int), bins - 1)
    return float(sum(abs(probability[place == at].mean() - right[place == at].mean()) * (place == at).mean()
                     for at in range(bins) if (place == at).any()))  # fmt: skip


def fit_refusal(tasks: Sequence[Task]) -> tuple[float, float, float]:
    """(part, cut, slope): the rate of false rejections with the best balance, and its cosine cut + slope·ln K."""
    judged = [task for task in tasks if len(task.left_out) >= 5 and len(task.unknown)]

    def balance(part: float) -> float:
        cuts = [np.quantile(task.left_out, part) for task in judged]
        return float(np.mean([
            (task.known >= cut).mean() + (task.unknown < cut).mean() for task, cut in zip(judged, cuts, strict=True)
        ]))  # fmt: skip

    part = max(REFUSED_PARTS, key=balance)
    plain = [task for task in tasks if not task.names]  # with a name, there is something to leave out
    cuts = [float(np.quantile(task.known, part)) for task in plain]
    slope, cut = np.polyfit([math.log(task.shot) for task in plain], cuts, 1)
    return part, float(cut), float(slope)


def fit_calibrations(tasks: Sequence[Task]) -> tuple[Calibration, Calibration]:
    """Of the deciding score, and of the cosines alone."""
    part, cut, slope = fit_refusal(tasks)
    found = []
    for scores in (lambda task: task.scores, lambda task: task.cosine_scores):
        level, per_class, per_example = fit_scale(tasks, scores)
        found.append(
            Calibration(
                level, per_class, per_example, part, cut, slope, name_weight=1.0, tasks=len(tasks), least_scale=0.05
            )
        )
    return found[0], found[1]

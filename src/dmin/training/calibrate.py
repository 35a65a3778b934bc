"""Calibration of a head on validation classes: probabilities, the refusal threshold, a name's weight, base classes.

Tasks of many sizes are drawn from classes that training never saw; in each, some of the remaining classes are the unknown
ones. These are fitted on them: the temperature of the probabilities, with a correction for the numbers of classes and of
examples; which rate of false rejections balances best with rejected unknown texts; for a head that did not learn it, how
many examples a class's name is worth; and, for a head that keeps its base classes, what to add to their cosines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmin.data import ClassSplit, Corpus
from dmin.methods import FewShotMethod, KeepsBaseClasses, LearnsNameWeight, prepared_scoring, score_prepared
from dmin.model.calibration import CLASSES, EXAMPLES, Calibration
from dmin.training.small_tasks import CalibrationTask, Encode, TaskPool

SIZES = (5, 10, 20, 40, 80, 150)
LARGE_SIZES = (10, 20, 40, 80, 150)  # of training classes
SHOTS = (1, 2, 5, 10)
REFUSED_PARTS = (0.02, 0.03, 0.05, 0.075, 0.1)  # false rejections; not more, because users mind them
BASE_OFFSETS = tuple(step / 100 for step in range(-20, 32, 2))
NAME_WEIGHTS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
DRAWS = 4  # tasks of each size and shot
_BLOCK = 16_000_000  # floats of one intermediate tensor
GROWTH_DEVIATION = 2.0  # prior standard deviation of how the scale grows: keeps what is fitted on small tasks sane


class Scored(NamedTuple):
    """A task's cosines [L, C], its labels [L] and its number K of examples per class."""

    cosines: Tensor
    labels: Tensor
    examples: int


class ScoredBoth(NamedTuple):
    """Cosines of queries with novel classes [L, C] and with base classes [L, N], texts of novel classes first."""

    novel: Tensor
    base: Tensor
    columns: Tensor  # [L], of the right class: novel ones count first
    of_novel: int  # texts of novel classes


@torch.no_grad()
def calibrate(
    method: FewShotMethod,
    corpus: Corpus,
    split: ClassSplit,
    encode: Encode,
    seed: int,
    base: Sequence[tuple[int, int]] = (),
) -> Calibration | None:
    """Fit a calibration on classes that training did not see; None where there are too few of them.

    Args:
        method: a trained method that gives cosines.
        corpus: the texts.
        split: whose validation classes are used, and the training classes for what needs many classes.
        encode: texts -> vectors [n, d].
        seed: of the tasks.
        base: (index of a text, row in the memory) of texts of base classes that the memory was not learned from.
    """
    if not method.traits.gives_cosines:
        return None
    tasks = TaskPool(corpus, split.valid, encode, seed).draw(SIZES, SHOTS, DRAWS)
    if not tasks:
        return None
    larger = TaskPool(corpus, split.train, encode, seed).draw(LARGE_SIZES, (1, 5), 1)
    learned = method.learned_name_weight() if isinstance(method, LearnsNameWeight) else None
    name_weight = best_name_weight(method, tasks) if learned is None else learned
    scored = [(task, *_cosines(method, task, weight)) for task in tasks for weight in (None, name_weight)]
    weights = (None, name_weight)
    level, per_class, per_row = fit_temperature(
        [Scored(known, task.labels, task.support.shape[1]) for task, known, _ in scored],
        [Scored(_cosines(method, t, w)[0], t.labels, t.support.shape[1]) for t in larger for w in weights],
    )
    part, cut, per_example = fit_refusal(
        [
            (task.support.shape[1], _left_out(method, task), known.max(-1).values, unknown.max(-1).values)
            for task, known, unknown in scored[::2]  # those without names
        ]
    )
    offset = (0.0, 0.0)
    if base and isinstance(method, KeepsBaseClasses):
        asked = encode([corpus.texts[row] for row, _ in base])
        offset = fit_base_offset(method, tasks, asked, torch.tensor([number for _, number in base]))
    return Calibration(level, per_class, per_row, part, cut, per_example, name_weight, *offset, len(tasks))


def _cosines(method: FewShotMethod, task: CalibrationTask, name_weight: float | None) -> tuple[Tensor, Tensor]:
    """Cosines of known queries [L, C] and of unknown ones [M, C]; with a name's weight, names take part."""
    rows, weights = task.support, None
    if name_weight is not None:
        rows = torch.cat([rows, task.names], dim=1)
        weights = torch.ones(rows.shape[:2], device=rows.device)
        weights[:, -1] = name_weight
    prepared = prepared_scoring(method).prepare(rows)
    query = torch.cat([task.query, task.unknown])
    step = max(1, _BLOCK // prepared.numel())
    blocks = [
        score_prepared(method, prepared, query[at : at + step], None, weights) for at in range(0, len(query), step)
    ]
    both = torch.cat(blocks).float().cpu() / method.temperature
    return both[: len(task.query)], both[len(task.query) :]


def best_name_weight(method: FewShotMethod, tasks: Sequence[CalibrationTask]) -> float:
    """The weight of a name that answers most queries right; of equal ones, the nearest to 1."""

    def accuracy(weight: float) -> float:
        right = [(_cosines(method, t, weight)[0].argmax(-1) == t.labels).double().mean() for t in tasks]
        return float(torch.stack(right).mean())

    return max(NAME_WEIGHTS, key=lambda weight: (accuracy(weight), -abs(math.log(weight))))


def fit_temperature(scored: Sequence[Scored], trained: Sequence[Scored] = ()) -> tuple[float, float, float]:
    """(a, b, c) of softmax((a + b·ln(C / 20) + c·ln(K / 5))·cosine) with the least negative log-likelihood.

    Validation classes are few, and the fit is used for many more: how the scale grows is learned on tasks of training
    classes too, which have a level of their own, because they are known too well. Tasks of each shape weigh alike.

    Args:
        scored: tasks of validation classes.
        trained: tasks of training classes.
    """
    from scipy.optimize import minimize

    shapes = [(level, *shape) for level, tasks in enumerate((scored, trained)) for shape in _by_shape(tasks)]

    def loss(values: Any) -> tuple[float, Any]:
        with torch.enable_grad():
            point = torch.tensor(values, dtype=torch.float64, requires_grad=True)
            parts = [
                torch.nn.functional.cross_entropy((point[level] + point[2:] @ growth) * cosines, labels)
                for level, cosines, labels, growth in shapes
            ]
            prior = 0.5 * (point[2:] / GROWTH_DEVIATION).square().sum() / (len(scored) + len(trained))
            total = torch.stack(parts).mean() + prior
            total.backward()  # type: ignore[no-untyped-call]
        assert point.grad is not None  # noqa: S101 (backward fills it)
        return total.item(), point.grad.numpy()

    found = minimize(loss, np.array([20.0, 20.0, 0.0, 0.0]), jac=True, method="L-BFGS-B")
    return float(found.x[0]), float(found.x[2]), float(found.x[3])


def _by_shape(tasks: Sequence[Scored]) -> list[tuple[Tensor, Tensor, Tensor]]:
    """For each C and K: all cosines, their labels, and (ln(C / 20), ln(K / 5))."""
    groups: dict[tuple[int, int], list[Scored]] = {}
    for task in tasks:
        groups.setdefault((task.cosines.shape[1], task.examples), []).append(task)
    return [
        (
            torch.cat([task.cosines for task in group]).double(),
            torch.cat([task.labels for task in group]),
            torch.tensor([math.log(classes / CLASSES), math.log(examples / EXAMPLES)], dtype=torch.float64),
        )
        for (classes, examples), group in groups.items()
    ]


@torch.no_grad()
def _left_out(method: FewShotMethod, task: CalibrationTask) -> Tensor:
    """The highest cosine of each support example once it has left its class, [C·K]; none where it is alone."""
    classes, shot = task.support.shape[:2]
    prepared = prepared_scoring(method).prepare(task.support)
    found = []
    for row in range(shot if shot > 1 else 0):
        rest = [index for index in range(shot) if index != row]
        scores = score_prepared(method, prepared[:, rest], task.support[:, row]) / method.temperature  # [C, C]
        found.append(scores.max(dim=-1).values.float().cpu())
    return torch.stack(found, dim=1).reshape(classes * shot) if found else torch.empty(0)


def fit_base_offset(
    method: FewShotMethod, tasks: Sequence[CalibrationTask], asked: Tensor, labels: Tensor
) -> tuple[float, float]:
    """(offset, slope): offset + slope·ln K, added to base cosines, gives the best harmonic mean of base and novel accuracy.

    It is sought for each number K of examples separately, over the tasks of most classes: the more examples, the better a
    class fits its queries, and the more the base classes need.

    Args:
        method: keeps base classes.
        tasks: their classes play the novel ones.
        asked: vectors of base texts [n, d].
        labels: their rows in the memory [n].
    """
    largest = max(len(task.support) for task in tasks)
    chosen = [task for task in tasks if len(task.support) == largest]
    shots = sorted({task.support.shape[1] for task in chosen})
    best = [_best_offset(method, [t for t in chosen if t.support.shape[1] == shot], asked, labels) for shot in shots]
    slope, offset = np.polyfit(np.log(shots), best, 1) if len(shots) > 1 else (0.0, best[0])
    return float(offset), float(slope)


def _best_offset(method: FewShotMethod, chosen: Sequence[CalibrationTask], asked: Tensor, labels: Tensor) -> float:
    if not isinstance(method, KeepsBaseClasses):
        raise TypeError(f"{method.name} keeps no base classes")
    scored = []
    for task in chosen:
        query = torch.cat([task.query, asked])
        novel = score_prepared(method, prepared_scoring(method).prepare(task.support), query) / method.temperature
        base = method.base_scores(query) / method.temperature
        columns = torch.cat([task.labels, labels + novel.shape[1]])
        scored.append(ScoredBoth(novel.cpu(), base.cpu(), columns, len(task.query)))
    return max(BASE_OFFSETS, key=lambda offset: (harmonic_balance(scored, offset), -abs(offset)))


def harmonic_balance(scored: Sequence[ScoredBoth], offset: float) -> float:
    """Harmonic mean of the accuracies on base and novel classes, answered at once; base cosines get `offset`."""
    values = []
    for both in scored:
        right = (torch.cat([both.novel, both.base + offset], dim=1).argmax(dim=1) == both.columns).double()
        novel, base = float(right[: both.of_novel].mean()), float(right[both.of_novel :].mean())
        values.append(2 * novel * base / max(novel + base, 1e-9))
    return float(np.mean(values))


def fit_refusal(samples: Sequence[tuple[int, Tensor, Tensor, Tensor]]) -> tuple[float, float, float]:
    """(part, cut, slope): the rate of false rejections with the best balance, and the cosine cut + slope·ln K of it.

    Args:
        samples: for each task K, and the highest cosines of its own examples left out [C·K] (none where K is 1), of texts
            of its classes [L], and of unknown classes [M].
    """
    judged = [(left.numpy(), known.numpy(), unknown.numpy()) for _, left, known, unknown in samples if len(left)]

    def balance(part: float) -> float:
        cuts = [np.quantile(left, part) for left, _, _ in judged]
        pairs = zip(cuts, judged, strict=True)
        return float(np.mean([(known >= cut).mean() + (unknown < cut).mean() for cut, (_, known, unknown) in pairs]))

    part = max(REFUSED_PARTS, key=balance)
    cuts = [float(np.quantile(known.numpy(), part)) for _, _, known, _ in samples]
    logs = np.array([math.log(shot) for shot, *_ in samples])
    slope, cut = np.polyfit(logs, cuts, 1) if np.ptp(logs) else (0.0, np.mean(cuts))  # one K says nothing about growth
    return part, float(cut), float(slope)

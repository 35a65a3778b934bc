"""What a head's cosines mean, learned on validation classes: probabilities, a threshold for refusal, a name's weight.

Tasks of many sizes are drawn from classes that training never saw; in each, some of the remaining classes play the
unknown. These are fitted on them: the temperature of the probabilities, with a correction for the number of classes;
how small a part of what belongs should be refused so that strangers are told apart best; for a head that did not learn it,
how many examples a class's name is worth; and, for a head that keeps its base classes, what to add to their cosines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dmin.data import Corpus
from dmin.errors import ModelError
from dmin.methods import FewShotMethod

SIZES = (5, 10, 20, 40, 80, 150)
SHOTS = (1, 2, 5, 10)
REFUSED_PARTS = (0.02, 0.03, 0.05, 0.075, 0.1)  # not more: users mind a refusal of what belongs
BASE_OFFSETS = tuple(step / 100 for step in range(-20, 32, 2))
NAME_WEIGHTS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
DRAWS = 4  # tasks of each size and shot
QUERIES = 80  # at most, in a task; as many again from classes that are left out
_BLOCK = 16_000_000  # floats of one intermediate tensor
REFERENCE = 20  # classes at which `temperature` is the scale
SLOPE_DEVIATION = (
    2.0  # prior standard deviation of `temperature_per_log_class`: keeps what is fitted on small tasks sane
)
_LEAST = 3  # validation classes, below which nothing can be learned

Encode = Callable[[Sequence[str]], Tensor]


@dataclass(frozen=True)
class Calibration:
    """Probabilities are softmax(scale(C)·cosine); refused is what lies below the cosine of all but `refused_part`."""

    temperature: float
    temperature_per_log_class: float
    refused_part: float  # of what belongs, at the best balance with strangers refused
    cut: float  # the cosine of that part, in validation tasks of one example a class
    cut_per_log_example: float
    name_weight: float
    base_offset: float = 0.0  # added to the cosines of base classes, so that they and novel classes compete fairly
    tasks: int = 0

    def scale(self, classes: int) -> float:
        """What a cosine is multiplied by before the softmax, among so many classes."""
        return max(1.0, self.temperature + self.temperature_per_log_class * math.log(max(2, classes) / REFERENCE))

    def threshold(self, examples: int) -> float:
        """The cosine below which a text is refused, the nearest class having so many examples."""
        return self.cut + self.cut_per_log_example * math.log(max(1, examples))

    def as_dict(self) -> dict[str, Any]:
        """As it stands in `head.json`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Read what `as_dict` gave."""
        missing = [field.name for field in fields(cls) if field.name not in values and field.default is MISSING]
        if missing:
            raise ModelError(f"the calibration in head.json lacks {', '.join(missing)}: train the model again")
        return cls(**{field.name: values[field.name] for field in fields(cls) if field.name in values})


@dataclass(frozen=True)
class Task:
    """Vectors of a small all-class task: what belongs, with labels, and what belongs nowhere."""

    support: Tensor  # [C, K, d]
    names: Tensor  # [C, 1, d]
    query: Tensor  # [L, d]
    labels: Tensor  # [L]
    strangers: Tensor  # [M, d], of other classes


@torch.no_grad()
def calibrate(
    method: FewShotMethod,
    corpus: Corpus,
    classes: Sequence[str],
    encode: Encode,
    seed: int,
    base: Sequence[tuple[int, int]] = (),
) -> Calibration | None:
    """Fit a calibration on classes that training did not see; None where there are too few of them.

    Args:
        method: a trained method that gives cosines.
        corpus: the texts.
        classes: the validation classes.
        encode: texts -> vectors [n, d].
        seed: of the tasks.
        base: (index of a text, row in the memory) of texts of base classes that the memory was not learned from.
    """
    kept = [label for label in classes if len(corpus.by_class[label]) >= 4]
    if len(kept) < _LEAST or not method.gives_cosines:
        return None
    rows = [row for label in kept for row in corpus.by_class[label]]
    vectors = dict(zip(rows, encode([corpus.texts[row] for row in rows]), strict=True))
    names = dict(zip(kept, encode([corpus.name_of(label) for label in kept]), strict=True))
    tasks = draw_tasks(corpus, kept, vectors, names, seed)
    learned = getattr(method, "name_weight", None)
    name_weight = float(learned) if learned is not None else best_name_weight(method, tasks)
    scored = [(task, *_cosines(method, task, weight)) for task in tasks for weight in (None, name_weight)]
    temperature, slope = fit_temperature([(known, task.labels) for task, known, _ in scored])
    part, cut, per_example = fit_refusal(
        [
            (task.support.shape[1], _left_out(method, task), known.max(-1).values, strange.max(-1).values)
            for task, known, strange in scored[::2]  # those without names
        ]
    )
    offset = 0.0
    if base and method.needs_memory:
        asked = encode([corpus.texts[row] for row, _ in base])
        offset = fit_base_offset(method, tasks, asked, torch.tensor([number for _, number in base]))
    return Calibration(temperature, slope, part, cut, per_example, name_weight, offset, len(tasks))


def draw_tasks(
    corpus: Corpus, classes: Sequence[str], vectors: Mapping[int, Tensor], names: Mapping[str, Tensor], seed: int
) -> list[Task]:
    """Tasks of growing size, from classes of each data set and, where several are joined, of all together."""
    random = np.random.default_rng([seed, 7])
    groups: dict[str, list[str]] = {}
    for label in classes:
        groups.setdefault(corpus.origin.get(label, ""), []).append(label)
    if len(groups) > 1:
        groups["all"] = list(classes)
    tasks = []
    for group in groups.values():
        room = max(2, round(0.75 * len(group)))  # the rest play the unknown
        sizes = sorted({min(size, room) for size in SIZES})
        for size in sizes if len(group) >= _LEAST else []:
            for shot in SHOTS:
                tasks += [_draw(corpus, group, size, shot, vectors, names, random) for _ in range(DRAWS)]
    return tasks


def _draw(
    corpus: Corpus,
    group: Sequence[str],
    size: int,
    shot: int,
    vectors: Mapping[int, Tensor],
    names: Mapping[str, Tensor],
    random: np.random.Generator,
) -> Task:
    order = [group[index] for index in random.permutation(len(group))]
    chosen, others = order[:size], order[size:]
    each = max(1, QUERIES // size)
    support, query, labels = [], [], []
    for number, label in enumerate(chosen):
        rows = random.permutation(corpus.by_class[label])
        cut = min(shot, len(rows) - 1)
        picked = rows[np.arange(shot) % cut]  # a class with too few texts shows some twice
        support.append(torch.stack([vectors[int(row)] for row in picked]))
        query += [vectors[int(row)] for row in rows[cut : cut + each]]
        labels += [number] * len(rows[cut : cut + each])
    pool = [row for label in others for row in corpus.by_class[label]]
    strange = random.choice(pool, size=min(len(pool), len(query)), replace=False)
    return Task(
        torch.stack(support),
        torch.stack([names[label] for label in chosen]).unsqueeze(1),
        torch.stack(query),
        torch.tensor(labels),
        torch.stack([vectors[int(row)] for row in strange]),
    )


def _cosines(method: FewShotMethod, task: Task, name_weight: float | None) -> tuple[Tensor, Tensor]:
    """Cosines of what belongs [L, C] and of what does not [M, C]; with a name's weight, names take part."""
    rows, weights = task.support, None
    if name_weight is not None:
        rows = torch.cat([rows, task.names], dim=1)
        weights = torch.ones(rows.shape[:2], device=rows.device)
        weights[:, -1] = name_weight
    prepared = method.prepare(rows)
    query = torch.cat([task.query, task.strangers])
    step = max(1, _BLOCK // prepared.numel())
    blocks = [
        method.score_prepared(prepared, query[at : at + step], None, weights) for at in range(0, len(query), step)
    ]
    both = torch.cat(blocks).float().cpu() / method.temperature
    return both[: len(task.query)], both[len(task.query) :]


def best_name_weight(method: FewShotMethod, tasks: Sequence[Task]) -> float:
    """The weight of a name that answers most queries right."""

    def accuracy(weight: float) -> float:
        right = [(_cosines(method, t, weight)[0].argmax(-1) == t.labels).double().mean() for t in tasks]
        return float(torch.stack(right).mean())

    return max(NAME_WEIGHTS, key=accuracy)


def fit_temperature(scored: Sequence[tuple[Tensor, Tensor]]) -> tuple[float, float]:
    """(a, b) of softmax((a + b·ln(C / 20))·cosine) with the least negative log-likelihood; each size weighs alike.

    A prior holds b near 0: validation classes are few, and the fit is used for many more classes than it has seen.

    Args:
        scored: cosines [L, C] and labels [L] of each task.
    """
    from scipy.optimize import minimize

    sizes = sorted({cosines.shape[1] for cosines, _ in scored})
    groups = [
        (
            torch.cat([c for c, _ in scored if c.shape[1] == size]).double(),
            torch.cat([n for c, n in scored if c.shape[1] == size]),
            math.log(size / REFERENCE),
        )
        for size in sizes
    ]

    def loss(values: Any) -> tuple[float, Any]:
        with torch.enable_grad():
            point = torch.tensor(values, dtype=torch.float64, requires_grad=True)
            parts = [
                torch.nn.functional.cross_entropy((point[0] + point[1] * log) * c, n, reduction="mean")
                for c, n, log in groups
            ]
            total = torch.stack(parts).mean() + 0.5 * (point[1] / SLOPE_DEVIATION) ** 2 / len(scored)
            total.backward()  # type: ignore[no-untyped-call]
        assert point.grad is not None  # noqa: S101 (backward fills it)
        return total.item(), point.grad.numpy()

    found = minimize(loss, np.array([20.0, 0.0]), jac=True, method="L-BFGS-B")
    return float(found.x[0]), float(found.x[1])


@torch.no_grad()
def _left_out(method: FewShotMethod, task: Task) -> Tensor:
    """The highest cosine of each support example once it has left its class, [C·K]; none where it is alone."""
    classes, shot = task.support.shape[:2]
    prepared = method.prepare(task.support)
    found = []
    for row in range(shot if shot > 1 else 0):
        rest = [index for index in range(shot) if index != row]
        scores = method.score_prepared(prepared[:, rest], task.support[:, row]) / method.temperature  # [C, C]
        found.append(scores.max(dim=-1).values.float().cpu())
    return torch.stack(found, dim=1).reshape(classes * shot) if found else torch.empty(0)


def fit_base_offset(method: FewShotMethod, tasks: Sequence[Task], asked: Tensor, labels: Tensor) -> float:
    """What to add to base cosines for the highest harmonic mean of base and novel accuracy, over the largest tasks.

    Args:
        method: keeps base classes.
        tasks: their classes play the novel ones.
        asked: vectors of base texts [n, d].
        labels: their rows in the memory [n].
    """
    largest = max(len(task.support) for task in tasks)
    chosen = [task for task in tasks if len(task.support) == largest]
    scores = []
    for task in chosen:
        query = torch.cat([task.query, asked])
        novel = method.score_prepared(method.prepare(task.support), query) / method.temperature
        base = method.base_scores(query) / method.temperature
        scores.append((task, novel.cpu(), base.cpu()))

    def balance(offset: float) -> float:
        values = []
        for task, novel, base in scores:
            answers = torch.cat([novel, base + offset], dim=1).argmax(dim=1)
            size = len(task.query)
            right_novel = float((answers[:size] == task.labels).double().mean())
            right_base = float((answers[size:] - novel.shape[1] == labels).double().mean())
            values.append(2 * right_novel * right_base / max(right_novel + right_base, 1e-9))
        return float(np.mean(values))

    return max(BASE_OFFSETS, key=lambda offset: (balance(offset), -abs(offset)))


def fit_refusal(samples: Sequence[tuple[int, Tensor, Tensor, Tensor]]) -> tuple[float, float, float]:
    """(part, cut, slope): the part of what belongs to refuse for the best balance, and the cosine cut + slope·ln K of it.

    Args:
        samples: for each task K, and the highest cosines of its own examples left out [C·K] (none where K is 1), of texts
            that belong [L], and of strangers [M].
    """
    judged = [(left.numpy(), known.numpy(), strange.numpy()) for _, left, known, strange in samples if len(left)]

    def balance(part: float) -> float:
        cuts = [np.quantile(left, part) for left, _, _ in judged]
        rows = zip(cuts, judged, strict=True)
        return float(np.mean([(known >= cut).mean() + (strange < cut).mean() for cut, (_, known, strange) in rows]))

    part = max(REFUSED_PARTS, key=balance)
    cuts = [float(np.quantile(known.numpy(), part)) for _, _, known, _ in samples]
    logs = np.array([math.log(shot) for shot, *_ in samples])
    slope, cut = np.polyfit(logs, cuts, 1) if np.ptp(logs) else (0.0, np.mean(cuts))  # one K says nothing about growth
    return part, float(cut), float(slope)

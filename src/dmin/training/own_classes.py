"""The classes of a model that was trained with all_classes: their vectors, and the calibration of their cosines.

Stage 1 learned a vector of each class in another space than the head compares in. Here these vectors learn once more,
with everything else frozen, so that `base_scores` answers as well as a classifier of these classes alone. No class is
left over for the calibration: texts that were held out stand for new ones, and some classes at a time play the novel or the
unknown ones.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dmin.data import Corpus
from dmin.methods import FewShotMethod, KeepsBaseClasses, LearnsNameWeight, prepared_scoring, score_prepared
from dmin.model.calibration import Calibration
from dmin.threads import one_thread
from dmin.training.calibrate import ScoredBoth, fit_refusal, harmonic_balance
from dmin.training.config import SupervisedSettings
from dmin.training.small_tasks import Encode
from dmin.training.task import BaseText

INITIAL_SCALE = 20.0
STEPS = 500  # in an epoch, at most; of many texts the batches are larger
SHOTS = (1, 2, 5, 10)  # examples per class of classes that play the novel ones
DRAWS = 4  # of such classes, for each number of examples
NOVEL_PART = 0.2  # of the classes play the novel ones
QUERIES = 1000  # held-out texts in a draw, at most
OFFSETS = tuple(step / 100 for step in range(-30, 52, 2))
SCALES = (1.0, 500.0)  # of probabilities
_BLOCK = 4096  # texts scored at once


@dataclass(frozen=True)
class LabelledVectors:
    """Vectors of texts with the number of each one's class, which is its row in the memory."""

    vectors: Tensor  # [n, d]
    labels: Tensor  # [n]

    @classmethod
    def of(cls, corpus: Corpus, texts: Sequence[BaseText], encode: Encode) -> LabelledVectors:
        """Encode some texts of a corpus."""
        vectors = encode([corpus.texts[row] for row, _ in texts])
        return cls(vectors, torch.tensor([number for _, number in texts], device=vectors.device))

    def at(self, places: Tensor) -> LabelledVectors:
        """Some of them."""
        return LabelledVectors(self.vectors[places], self.labels[places])

    def of_classes(self, numbers: Tensor) -> Tensor:
        """Where the texts of some classes stand, [m]."""
        return torch.isin(self.labels, numbers.to(self.labels)).nonzero().flatten()


def fit_own_classes(
    method: FewShotMethod, train: LabelledVectors, held: LabelledVectors, settings: SupervisedSettings, seed: int
) -> float:
    """Train the vectors of the classes in the space of the head; returns the accuracy on the held-out texts.

    The epoch with the highest held-out accuracy is kept, of equal ones the last; the start counts as an epoch.

    Args:
        method: keeps base classes; only its memory changes.
        train: texts to learn from.
        held: texts that choose the epoch.
        settings: of stage 1: epochs, batch and learning rate.
        seed: of the order of the texts.
    """
    rows = _memory(method)
    best, kept = own_accuracy(method, held), rows.detach().clone()
    with one_thread(rows.device.type == "cpu"), torch.enable_grad(), _only_memory_learns(method, rows):
        for _ in _epochs(method, rows, train, settings, seed):
            accuracy = own_accuracy(method, held)
            if accuracy >= best:
                best, kept = accuracy, rows.detach().clone()
    with torch.no_grad():
        rows.copy_(kept)
    return best


def _epochs(
    method: FewShotMethod, rows: nn.Parameter, train: LabelledVectors, settings: SupervisedSettings, seed: int
) -> Iterator[int]:
    """Train for one epoch after another; yields the number of each.

    Unlike in stage 1 the rates fall to 0 and the scale begins at 20: about a point more on held-out texts of banking77.
    """
    scale = nn.Parameter(torch.tensor(INITIAL_SCALE, device=rows.device))
    size = torch.linalg.vector_norm(rows.detach(), dim=-1).mean().item()  # steps are relative to the vectors
    peaks = (settings.learning_rate * size, settings.learning_rate)
    optimizer = torch.optim.AdamW(
        [{"params": [rows], "lr": peaks[0]}, {"params": [scale], "lr": peaks[1]}], weight_decay=0.0
    )
    count = len(train.labels)
    batch = min(max(settings.batch, count // STEPS), count)
    steps, step = settings.epochs * (count // batch), 0
    for epoch in range(settings.epochs):
        order = torch.from_numpy(np.random.default_rng([seed, 8, epoch]).permutation(count))
        for start in range(0, count - batch + 1, batch):
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                group["lr"] = peak * (1 - step / steps)
            part = train.at(order[start : start + batch])
            loss = functional.cross_entropy(scale * _cosines(method, part.vectors), part.labels)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            step += 1
        yield epoch


class _only_memory_learns:  # noqa: N801 (used like a function)
    """Inside, the memory alone has a gradient; afterwards every weight is as it was."""

    def __init__(self, method: FewShotMethod, rows: nn.Parameter) -> None:
        self.before = [(weight, weight.requires_grad) for weight in method.parameters()]
        self.rows = rows

    def __enter__(self) -> None:
        for weight, _ in self.before:
            weight.requires_grad_(weight is self.rows)

    def __exit__(self, *exception: object) -> None:
        self.rows.grad = None
        for weight, learned in self.before:
            weight.requires_grad_(learned)


@torch.no_grad()
def own_cosines(method: FewShotMethod, vectors: Tensor) -> Tensor:
    """Cosines of texts [n, d] with the model's own classes [n, N], without gradient."""
    parts = [_cosines(method, vectors[at : at + _BLOCK]) for at in range(0, len(vectors), _BLOCK)]
    return torch.cat(parts)


def own_accuracy(method: FewShotMethod, texts: LabelledVectors) -> float:
    """Accuracy among the model's own classes."""
    return float((own_cosines(method, texts.vectors).argmax(-1) == texts.labels).double().mean())


@torch.no_grad()
def calibrate_own_classes(
    method: FewShotMethod, train: LabelledVectors, held: LabelledVectors, seed: int
) -> Calibration:
    """Calibrate on held-out texts: the scale of probabilities, the refusal threshold, and what is added to the cosines.

    The more examples a novel class has, the better it fits its texts, and the more is added to the cosines of the own
    classes; the threshold grows by as much.

    Args:
        method: keeps base classes, and is trained.
        train: texts that it learned from; some of them play the examples of novel classes.
        held: texts that it did not learn from.
        seed: of the draws.
    """
    cosines = own_cosines(method, held.vectors)  # [n, N]
    own = functional.one_hot(held.labels, cosines.shape[1]).bool()
    others = cosines.masked_fill(own, -torch.inf).max(dim=-1).values  # as if the text's own class were unknown
    offset, slope = fit_own_offset(method, train, held, seed)
    highest = cosines.max(dim=-1).values.cpu()
    part, cut, _ = fit_refusal([(1, highest, highest, others.cpu())])
    learned = method.learned_name_weight() if isinstance(method, LearnsNameWeight) else 1.0
    return Calibration(
        temperature=fit_scale(cosines, held.labels),
        temperature_per_log_class=0.0,
        temperature_per_log_example=0.0,
        refused_part=part,
        cut=cut + offset,
        cut_per_log_example=slope,
        name_weight=learned,
        base_offset=offset,
        base_offset_per_log_example=slope,
        tasks=len(SHOTS) * DRAWS,
    )


def fit_scale(cosines: Tensor, labels: Tensor) -> float:
    """The scale of softmax(scale·cosine) with the least negative log-likelihood, for cosines [n, N]."""
    from scipy.optimize import minimize_scalar

    values = cosines.double()

    def loss(scale: float) -> float:
        return float(functional.cross_entropy(scale * values, labels))

    return float(minimize_scalar(loss, bounds=SCALES, method="bounded").x)


def fit_own_offset(
    method: FewShotMethod, train: LabelledVectors, held: LabelledVectors, seed: int
) -> tuple[float, float]:
    """(offset, slope): offset + slope·ln K, added to own cosines, has the best harmonic mean of own and novel accuracy."""
    classes = len(_memory(method))
    random = np.random.default_rng([seed, 9])
    best = []
    for shot in SHOTS:
        scored = []
        for _ in range(DRAWS):
            order = torch.from_numpy(random.permutation(classes))
            novel = order[: max(1, round(NOVEL_PART * classes))].sort().values
            scored.append(_play_novel(method, train, held, novel, shot, random))
        found = [both for both in scored if both is not None]
        if not found:
            return 0.0, 0.0
        best.append(_best_offset(found))
    slope, offset = np.polyfit(np.log(SHOTS), best, 1)
    return float(offset), float(slope)


def _best_offset(scored: Sequence[ScoredBoth]) -> float:
    return max(OFFSETS, key=lambda offset: (harmonic_balance(scored, offset), -abs(offset)))


def _play_novel(
    method: FewShotMethod,
    train: LabelledVectors,
    held: LabelledVectors,
    novel: Tensor,
    shot: int,
    random: np.random.Generator,
) -> ScoredBoth | None:
    """Cosines of held-out texts where some classes are known by a few examples only; None where there are no texts."""
    rows = torch.arange(len(_memory(method)))
    base = rows[~torch.isin(rows, novel)]
    asked, own = (_some(held.of_classes(numbers), random) for numbers in (novel, base))
    if not len(asked) or not len(own):
        return None
    smaller = with_memory_rows(method, base)
    support = []
    for number in novel:
        places = train.of_classes(number.reshape(1))
        drawn = random.permutation(len(places))[:shot]
        support.append(train.vectors[places[torch.from_numpy(np.resize(drawn, shot))]])  # a small class repeats some
    prepared = prepared_scoring(smaller).prepare(torch.stack(support))  # [C, K, d]
    query = held.at(torch.cat([asked, own]))
    scores = score_prepared(smaller, prepared, query.vectors) / smaller.temperature  # [L, C]
    numbers = torch.cat([novel, base]).to(query.labels)  # the class of each column
    columns = (query.labels.unsqueeze(1) == numbers).long().argmax(dim=1)
    return ScoredBoth(scores.cpu(), _cosines(smaller, query.vectors).cpu(), columns.cpu(), len(asked))


def with_memory_rows(method: FewShotMethod, rows: Tensor) -> FewShotMethod:
    """A copy of a method that knows some of its base classes only."""
    smaller = copy.deepcopy(method)
    for name in ("base_memory", "keys"):  # (the keys are LwoF's, one for each row)
        weight = getattr(smaller, name, None)
        if isinstance(weight, nn.Parameter):
            setattr(smaller, name, nn.Parameter(weight.detach()[rows.to(weight.device)], weight.requires_grad))
    return smaller


def _some(places: Tensor, random: np.random.Generator) -> Tensor:
    return places[torch.from_numpy(random.permutation(len(places))[:QUERIES]).to(places.device)]


def _cosines(method: FewShotMethod, vectors: Tensor) -> Tensor:
    if not isinstance(method, KeepsBaseClasses):
        raise TypeError(f"{method.name} keeps no base classes")
    return method.base_scores(vectors) / method.temperature


def _memory(method: FewShotMethod) -> nn.Parameter:
    memory = method.base_memory
    if not isinstance(memory, nn.Parameter):
        raise TypeError(f"{method.name} has no memory")
    return memory

"""Strategies that `labelling.py` compares: which rows of a pile to label next.

Each takes a `State` and a number of rows and returns that many rows not labelled before. All see the same centred
vectors and the same logistic regression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

from dmin.labelling.selection import choose_rows, uncertainty


@dataclass
class State:
    """A pile under simulated labelling."""

    vectors: Any  # [n, d], centred, of norm 1
    labels: Any  # [n], hidden from the strategy but for the rows bought
    classes: int
    seed: int
    bought: list[int] = field(default_factory=list)
    kept: dict[str, Any] = field(default_factory=dict)  # what a strategy computes once

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)

    @property
    def free(self) -> Any:
        """Rows that are not bought."""
        return np.setdiff1d(np.arange(len(self.vectors)), self.bought)

    @property
    def known_classes(self) -> int:
        """Classes among the rows bought."""
        return len(set(self.labels[self.bought])) if self.bought else 0


Strategy = Callable[[State, int], list[int]]


def fitted(vectors: Any, labels: Any) -> LogisticRegression:
    """The classifier of the measurement: logistic regression, C = 10, on centred vectors of norm 1."""
    return LogisticRegression(C=10, max_iter=100, tol=1e-3).fit(vectors, labels)


def random(state: State, count: int) -> list[int]:
    """Drawn at random."""
    return [int(row) for row in state.generator.choice(state.free, count, replace=False)]


def k_means(state: State, count: int) -> list[int]:
    """As many clusters as labels bought in the end; in the largest without a label, the text nearest to the centre."""
    return _clustered(state, count, lambda rows, centre: rows[np.argmax(state.vectors[rows] @ centre)])


def typiclust(state: State, count: int) -> list[int]:
    """TypiClust (Hacohen et al., ICML 2022): in the largest clusters without a label, the most typical text."""
    if "typicality" not in state.kept:
        neighbours = min(20, len(state.vectors) - 1)
        cosines = -np.sort(-(state.vectors @ state.vectors.T), axis=1)[:, 1 : neighbours + 1]
        state.kept["typicality"] = -np.sqrt(np.maximum(0, 2 - 2 * cosines)).mean(axis=1)
    return _clustered(state, count, lambda rows, _: rows[np.argmax(state.kept["typicality"][rows])])


def probcover(state: State, count: int) -> list[int]:
    """ProbCover (Yehuda et al., NeurIPS 2022): balls of one radius, 95 % of which hold one k-means cluster only.

    The radius needs the number of classes, which the paper gives it too.
    """
    if "near" not in state.kept:
        distances = np.sqrt(np.maximum(0, 2 - 2 * state.vectors @ state.vectors.T))
        clusters = KMeans(state.classes, n_init=1, random_state=state.seed).fit_predict(state.vectors)
        same = clusters[:, None] == clusters[None]
        radii = np.arange(0.05, 1.3, 0.05)
        pure = [np.mean((same | (distances > radius)).all(axis=1)) for radius in radii]
        state.kept["near"] = distances <= max((r for r, p in zip(radii, pure, strict=True) if p >= 0.95), default=0.05)
    near, chosen = state.kept["near"], list(state.bought)
    covered = near[chosen].any(axis=0) if chosen else np.zeros(len(near), bool)
    gains = near[:, ~covered].sum(axis=1)
    for _ in range(count):
        gains[chosen] = -1
        chosen.append(int(np.argmax(gains)))
        newly = near[chosen[-1]] & ~covered
        gains, covered = gains - near[:, newly].sum(axis=1), covered | newly
    return chosen[len(state.bought) :]


def margin(state: State, count: int) -> list[int]:
    """The smallest difference of the two highest probabilities; the first batch at random."""
    return _uncertain(state, count, lambda p: np.sort(p, axis=1)[:, -2] - np.sort(p, axis=1)[:, -1])


def entropy(state: State, count: int) -> list[int]:
    """The highest entropy of the probabilities; the first batch at random."""
    return _uncertain(state, count, lambda p: -(p * np.log(p + 1e-12)).sum(axis=1))


def ours(power: float, measure: str, exponent: float) -> Strategy:
    """`dmin.suggest`, with its constants."""

    def choose(state: State, count: int) -> list[int]:
        known, weights = state.vectors[state.bought], None
        if state.bought:
            labels = list(state.labels[state.bought])
            weights = uncertainty(state.vectors, known, labels, measure=measure, exponent=exponent)
        chosen = choose_rows(state.vectors, count, known=known, weights=weights, taken=state.bought, power=power)
        rows = list(chosen.rows)
        left = [int(row) for row in state.free if row not in set(rows)]
        return rows + left[: count - len(rows)]  # near-duplicates only where nothing else is left

    return choose


BASELINES: dict[str, Strategy] = {
    "random": random, "k-means": k_means, "TypiClust": typiclust, "ProbCover": probcover, "margin": margin,
    "entropy": entropy,
}  # fmt: skip
GRID = {
    f"ours {power:g} {measure} {exponent:g}": ours(power, measure, exponent)
    for power in (1.5, 2.0, 3.0)
    for measure, exponent in (("least", 1.0), ("least", 2.0), ("margin", 1.0))
}


def _clustered(state: State, count: int, pick: Callable[[Any, Any], Any]) -> list[int]:
    total = len(state.bought) + count
    found = _k_means_of(state, total)
    sizes = np.bincount(found.labels_, minlength=total)
    have = np.bincount(found.labels_[state.bought], minlength=total) if state.bought else np.zeros(total, int)
    free = np.zeros(len(state.vectors), bool)
    free[state.free] = True
    chosen: list[int] = []
    for cluster in np.lexsort((-sizes, have)):
        rows = np.flatnonzero((found.labels_ == cluster) & free)
        if len(rows) and len(chosen) < count:
            chosen.append(int(pick(rows, found.cluster_centers_[cluster])))
    rest = [row for row in state.free if row not in set(chosen)]
    return chosen + [int(row) for row in rest[: count - len(chosen)]]


_FITTED: dict[tuple[int, int, float], KMeans] = {}  # k-means and TypiClust start from the same clusters


def _k_means_of(state: State, total: int) -> KMeans:
    key = (state.seed, total, float(state.vectors[0] @ state.vectors[-1]) + len(state.vectors))
    if key not in _FITTED:
        _FITTED[key] = KMeans(total, n_init=1, random_state=state.seed, max_iter=50).fit(state.vectors)
    return _FITTED[key]


def _uncertain(state: State, count: int, score: Callable[[Any], Any]) -> list[int]:
    if state.known_classes < 2:
        return random(state, count)
    model = fitted(state.vectors[state.bought], state.labels[state.bought])
    scores = np.array(score(model.predict_proba(state.vectors)))
    scores[state.bought] = -np.inf
    return [int(row) for row in np.argsort(-scores, kind="stable")[:count]]

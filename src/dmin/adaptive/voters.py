"""Unlabelled texts that vote on the classes of texts near them, beside what the head says of the examples.

A text of the pile gets what the neighbour graph found for itself; a new text gets the mean of what was found for those
around it. Votes are added to the score, so that they are one more term of an explanation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dmin.adaptive.namespace import array_namespace, device
from dmin.adaptive.products import class_products
from dmin.adaptive.spread import Array

NEARNESS = 16.0  # how much more a nearer one counts
SAME = 1 - 1e-4  # cosine from which on a text is one of the pile
BLOCK_QUERIES = 128


@dataclass(frozen=True, eq=False)
class Voters:
    """The pile, with the rows of the classes among it.

    Args:
        rows: [m, D], of norm 1.
        labels: what the graph found for each, [C, m].
        of_new: what the labels of each class weigh in the score of a new text [C].
        of_own: and in that of a text of the pile [C].
        level: log of the sum of the exponents of each one's scores without votes [m]; an added class is held against it.
        scale: of the whole score of a new text, so that it is as sure as without votes.
        own_scale: and of that of a text of the pile.
    """

    rows: Array
    labels: Array
    of_new: Array
    of_own: Array
    level: Array
    scale: float = 1.0
    own_scale: float = 1.0

    def __call__(self, queries: Array) -> tuple[Array, Array]:
        """(what is added to the scores [L, C], scale of the sum [L, 1]) for queries of norm 1 [L, D]."""
        xp, found = array_namespace(queries), []
        for at in range(0, queries.shape[0], BLOCK_QUERIES):
            near = queries[at : at + BLOCK_QUERIES, :] @ self.rows.T  # [B, m]
            known = xp.max(near, axis=1, keepdims=True) >= SAME  # [B, 1]
            own = self.own(xp.argmax(near, axis=1))
            scale = xp.where(known, self.own_scale * xp.ones_like(near[:, :1]), self.scale * xp.ones_like(near[:, :1]))
            found.append((xp.where(known, own, self._mean(near)), scale))
        if not found:
            return queries[:, :0] @ self.labels[:, :0].T, queries[:, :1]
        votes, scales = zip(*found, strict=True)
        return xp.concat(list(votes), axis=0), xp.concat(list(scales), axis=0)

    def added(self, scores: Array, queries: Array) -> Array:
        """Scores [L, C] with the votes, on the scale of probabilities."""
        votes, scale = self(queries)
        return scale * (scores + votes)

    def own(self, voters: Array) -> Array:
        """What some voters [L] add to their own scores: [L, C]."""
        xp = array_namespace(self.labels)
        return self.of_own * xp.take(self.labels, voters, axis=1).T

    def of_others(self, voters: NDArray[np.int64]) -> Array:
        """What the others add to the scores of some voters [L], as if these were new: [L, C]."""
        xp, where = array_namespace(self.rows), device(self.rows)
        parts = []
        for at in range(0, len(voters), BLOCK_QUERIES):
            own = xp.asarray(voters[at : at + BLOCK_QUERIES], device=where)  # [B]
            near = xp.take(self.rows, own, axis=0) @ self.rows.T  # [B, m]
            itself = own[:, None] == xp.arange(self.rows.shape[0], device=where)[None, :]
            parts.append(self._mean(xp.where(itself, -xp.ones_like(near), near)))
        return xp.concat(parts, axis=0)

    def _mean(self, near: Array) -> Array:
        """The mean vote [L, C], weighted by nearness [L, m]."""
        xp = array_namespace(near)
        weights = xp.exp(NEARNESS * (near - xp.max(near, axis=1, keepdims=True)))
        return self.of_new * class_products(weights, self.labels) / xp.sum(weights, axis=1, keepdims=True)

    def with_class(self, scores: Array, rows: Array) -> Voters:
        """With one class more, which gets votes by how likely it is beside the others; no other vote moves.

        Args:
            scores: of the voters for the class, without votes [m].
            rows: of the class [K, D]: a voter that is one of them is wholly of it.
        """
        xp = array_namespace(self.labels)
        top = xp.maximum(self.level, scores)
        level = top + xp.log(xp.exp(self.level - top) + xp.exp(scores - top))  # [m]
        label = xp.where(self._are(rows), xp.ones_like(scores), xp.exp(scores - level))  # [m]
        weights = (xp.concat([part, xp.max(part, keepdims=True)]) for part in (self.of_new, self.of_own))
        of_new, of_own = weights
        labels = xp.concat([self.labels, label[None, :]], axis=0)
        return replace(self, labels=labels, of_new=of_new, of_own=of_own, level=level)

    def with_examples(self, column: int, rows: Array) -> Voters:
        """With rows [K, D] of a class that may be texts of the pile: these vote for it as much as anybody votes."""
        xp = array_namespace(self.labels)
        own, most = float(self.of_own[column]), float(xp.max(self.of_own))
        full = most / own if own > 0 else 1.0
        label = self.labels[column, :]  # [m]
        label = xp.where(self._are(rows), xp.maximum(label, full * xp.ones_like(label)), label)
        return replace(
            self, labels=xp.concat([self.labels[:column, :], label[None, :], self.labels[column + 1 :, :]], axis=0)
        )

    def _are(self, rows: Array) -> Array:
        """Which voters are one of some rows [K, D]: [m]."""
        xp = array_namespace(self.rows)
        return xp.max(self.rows @ rows.T, axis=1) >= SAME

    def without_class(self, column: int) -> Voters:
        """With one class less."""
        keep = [place for place in range(self.labels.shape[0]) if place != column]
        return replace(self, labels=self.labels[keep, :], of_new=self.of_new[keep], of_own=self.of_own[keep])

    def fits(self, classes: int, width: int) -> bool:
        """Do the parts fit each other and a head of so many classes and this width?"""
        shapes = self.rows.shape[1:] == (width,) and self.labels.shape == (classes, self.rows.shape[0])
        weights = self.of_new.shape == self.of_own.shape == (classes,) and self.level.shape == self.rows.shape[:1]
        return bool(shapes and weights and 0 < self.scale < np.inf and 0 < self.own_scale < np.inf)

"""Unlabelled texts that vote on the classes of texts near them, beside what the head says of the examples.

A text of the pile is nearest to itself, so it gets what the neighbour graph found for it; a new text gets the mean of what
was found for those around it. Votes are added to the score, so that they are one more term of an explanation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dmin.adaptive.namespace import array_namespace, device
from dmin.adaptive.products import class_products
from dmin.adaptive.spread import Array

NEARNESS = 16.0  # how much more a nearer one counts
BLOCK_QUERIES = 128


@dataclass(frozen=True, eq=False)
class Voters:
    """The pile, with the rows of the classes among it.

    Args:
        rows: [m, D], of norm 1.
        votes: what each adds to the score of each class, [C, m].
        scale: of the whole score, so that probabilities are as sure as they were without votes.
    """

    rows: Array
    votes: Array
    scale: float

    def __call__(self, queries: Array) -> Array:
        """What is added to the scores of queries of norm 1 [L, D], before the scale: [L, C]."""
        xp = array_namespace(queries)
        parts = [
            self._mean(queries[at : at + BLOCK_QUERIES, :] @ self.rows.T)
            for at in range(0, queries.shape[0], BLOCK_QUERIES)
        ]
        return xp.concat(parts, axis=0) if parts else xp.zeros((0, self.votes.shape[0]), dtype=queries.dtype)

    def of_others(self, voters: NDArray[np.int64]) -> Array:
        """What the others add to the scores of some voters [L]: [L, C]."""
        xp = array_namespace(self.rows)
        parts = []
        for at in range(0, len(voters), BLOCK_QUERIES):
            own = xp.asarray(voters[at : at + BLOCK_QUERIES], device=device(self.rows))  # [B]
            near = xp.take(self.rows, own, axis=0) @ self.rows.T  # [B, m]
            itself = own[:, None] == xp.arange(self.rows.shape[0], device=device(self.rows))[None, :]
            parts.append(self._mean(xp.where(itself, -xp.ones_like(near), near)))
        return xp.concat(parts, axis=0)

    def _mean(self, near: Array) -> Array:
        """The mean vote [L, C], weighted by nearness [L, m]."""
        xp = array_namespace(near)
        weights = xp.exp(NEARNESS * (near - xp.max(near, axis=1, keepdims=True)))
        return class_products(weights, self.votes) / xp.sum(weights, axis=1, keepdims=True)

    def added(self, scores: Array, queries: Array) -> Array:
        """Scores [L, C] with the votes, on the scale of probabilities."""
        return self.scale * (scores + self(queries))

    def with_class(self) -> Voters:
        """With one class more, for which nobody votes."""
        xp = array_namespace(self.votes)
        return replace(self, votes=xp.concat([self.votes, xp.zeros_like(self.votes[:1, :])], axis=0))

    def without_class(self, column: int) -> Voters:
        """With one class less."""
        keep = [place for place in range(self.votes.shape[0]) if place != column]
        return replace(self, votes=self.votes[keep, :])

    @property
    def fits(self) -> bool:
        """Are there votes of every row?"""
        return bool(self.rows.shape[0] == self.votes.shape[1] and np.isfinite(self.scale) and self.scale > 0)

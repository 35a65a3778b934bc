"""What scores a class by its rows: nearest prototypes here, the methods of the registry in `dmin.classifier.trained`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from dmin.adaptive.namespace import array_namespace
from dmin.adaptive.prototypes import prototype_shares, prototypes, similarities, unit_rows
from dmin.classifier.arrays import Array, as_numpy


class Scorer:
    """Scores in two steps: the work on the rows of a class is done once, and kept.

    Rows and queries are arrays of numpy or torch; see `dmin.methods.abilities.PreparedScoring` for the steps.
    """

    name: str
    title: str
    joint = False  # a class's score depends on which other classes there are
    keeps_base = False  # can answer with its base classes
    temperature = 1.0  # score / temperature is the cosine

    def prepare(self, vectors: Array) -> Array:
        """The work that each row allows on its own: [n, d] -> [n, d]."""
        return vectors

    def support_side(self, prepared: Array, mask: Array | None = None, row_weights: Array | None = None) -> Any:
        """All that scoring needs of rows [C, K, d] and that no query changes."""
        raise NotImplementedError(f"{type(self).__name__} does not score")

    def query_side(self, query: Array) -> Any:
        """All that scoring needs of queries [L, d] and that no class changes."""
        raise NotImplementedError(f"{type(self).__name__} does not score")

    def score_sides(self, support: Any, queries: Any) -> Array:
        """Scores [L, C]."""
        raise NotImplementedError(f"{type(self).__name__} does not score")

    def shares(self, prepared: Array, query: Array, row_weights: Array) -> Array | None:
        """Each row's exact part of each score, [L, C, K]; None where scores do not divide."""
        del prepared, query, row_weights
        return None

    def base_scores(self, query: Array) -> Array:
        """Scores of the base classes, [L, N]."""
        raise NotImplementedError(f"{type(self).__name__} has no base classes")

    def memory_weights(self, vectors: Array) -> Array | None:
        """The weight of each base class for each row [K, N]; None where no memory is read."""
        del vectors
        return None

    def weights(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """Its learned weights."""
        return {}


class NearestPrototypes(Scorer):
    """Cosine to the mean direction of a class's rows."""

    name, title = "nearest", "nearest prototype"

    def support_side(self, prepared: Array, mask: Array | None = None, row_weights: Array | None = None) -> Array:
        """The prototypes, of norm 1: [C, d], in the precision that `similarities` computes with."""
        found = prototypes(prepared, mask, row_weights)
        xp = array_namespace(found)
        return xp.astype(found, xp.float64)

    def query_side(self, query: Array) -> Array:
        """The queries, of norm 1."""
        return unit_rows(query)

    def score_sides(self, support: Array, queries: Array) -> Array:
        """Cosines [L, C]."""
        return similarities(support, queries)

    def shares(self, prepared: Array, query: Array, row_weights: Array) -> Array:
        """Each row's exact part of each cosine, [L, C, K]."""
        return prototype_shares(prepared, query, None, row_weights)


class AdaptiveScorer(Scorer):
    """Stands for the adaptive head, which `dmin.classifier.scoring.Model` asks itself."""

    name, title = "adaptive", "adaptive head"


def as_scorer(method: Any) -> Scorer:
    """A scorer as it is; a method of the registry as one."""
    if isinstance(method, Scorer):
        return method
    from dmin.classifier.trained import TrainedScorer

    return TrainedScorer(method)


def head_digest(method: Any) -> str:
    """A digest of the weights of a head."""
    scorer = as_scorer(method)
    digest = hashlib.sha256(scorer.name.encode())
    for name, array in sorted(scorer.weights().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(as_numpy(array)).tobytes())
    return digest.hexdigest()[:16]

"""Nearest prototype: the baseline without training.

The prototype of a class is the sum of its L2-normalised support vectors, the score its cosine with the query. Nothing
is learned, so whatever a trained method gains over this row is what its training gave.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dmin.methods.base import COSINE_EPSILON, FewShotMethod, Traits, unit
from dmin.methods.registry import register


@register
class Nearest(FewShotMethod):
    """Cosine to the mean direction of the support vectors."""

    traits = Traits(name="nearest", title="nearest prototype", place=110, meta_trained=False, gives_cosines=True)

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Scores in [-1, 1], [..., L, C]."""
        del base_rows
        return self.score_sides(self.support_side(support, mask), self.query_side(query))

    def prepare(self, support: Tensor) -> Tensor:
        """The examples as they are."""
        return support

    def support_side(self, prepared: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None) -> Tensor:
        """The prototypes, of norm 1: [..., C, d]."""
        return unit(weighted_rows(prepared, mask, row_weights).sum(dim=-2))

    def query_side(self, query: Tensor) -> Tensor:
        """The queries, of norm 1."""
        return unit(query)

    def score_sides(self, support: Tensor, queries: Tensor) -> Tensor:
        """Cosines [..., L, C]."""
        # Not `@`, whose product for one query rounds otherwise than for many.
        return torch.einsum("...ld,...cd->...lc", queries, support)

    def contributions(
        self, prepared: Tensor, query: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> Tensor:
        """Each support example's exact share of each score: [..., L, C, K], adding up over K to `forward`."""
        rows = weighted_rows(prepared, mask, row_weights)  # [..., C, K, d]
        size: Tensor = torch.linalg.vector_norm(rows.sum(dim=-2), dim=-1).clamp_min(COSINE_EPSILON)  # [..., C]
        return torch.einsum("...ckd,...ld->...lck", rows, unit(query)) / size[..., None, :, None]


def weighted_rows(support: Tensor, mask: Tensor | None, row_weights: Tensor | None) -> Tensor:
    """Support vectors of norm 1, times their weights; 0 where masked. [..., C, K, d]."""
    rows = unit(support)
    if mask is not None:
        rows = rows * mask.unsqueeze(-1)
    return rows if row_weights is None else rows * row_weights.unsqueeze(-1)

"""Nearest prototype: the row that costs nothing.

The prototype of a class is the sum of its L2-normalised support vectors, the score its cosine with the query. Nothing
is learned, so whatever a trained method gains over this row is what its training gave.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from dmin.methods.base import COSINE_EPSILON, FewShotMethod, cosine, masked_mean, unit


class Nearest(FewShotMethod):
    """Cosine to the mean direction of the support vectors."""

    name: ClassVar[str] = "nearest"
    title: ClassVar[str] = "nearest prototype"
    meta_trained: ClassVar[bool] = False

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Scores in [-1, 1], [..., L, C]."""
        del base_rows
        prototypes = masked_mean(unit(support), mask)  # [..., C, d]
        return cosine(query.unsqueeze(-2), prototypes.unsqueeze(-3))

    def contributions(self, prepared: Tensor, query: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each support example's exact share of each score: [..., L, C, K], adding up over K to `forward`."""
        rows = unit(prepared)  # [..., C, K, d]
        if mask is not None:
            rows = rows * mask.unsqueeze(-1)
        size: Tensor = torch.linalg.vector_norm(rows.sum(dim=-2), dim=-1).clamp_min(COSINE_EPSILON)  # [..., C]
        return torch.einsum("...ckd,...ld->...lck", rows, unit(query)) / size[..., None, :, None]

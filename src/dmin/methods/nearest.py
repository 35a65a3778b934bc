"""Nearest prototype: the row that costs nothing.

The prototype of a class is the sum of its L2-normalised support vectors, the score its cosine with the query. Nothing
is learned, so whatever a trained method gains over this row is what its training gave.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dmin.methods.base import FewShotMethod, cosine, masked_mean, unit


class Nearest(FewShotMethod):
    """Cosine to the mean direction of the support vectors."""

    name: ClassVar[str] = "nearest"
    title: ClassVar[str] = "nearest prototype (frozen)"
    meta_trained: ClassVar[bool] = False

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Scores in [-1, 1], [..., L, C]."""
        del base_rows
        prototypes = masked_mean(unit(support), mask)  # [..., C, d]
        return cosine(query.unsqueeze(-2), prototypes.unsqueeze(-3))

"""Nearest prototype: the baseline without training.

The prototype of a class is the sum of its L2-normalised support vectors, the score its cosine with the query. Nothing
is learned, so whatever a trained method gains over this row is what its training gave. The classifier scores with the same
functions on numpy.
"""

from __future__ import annotations

from typing import cast

from torch import Tensor

from dmin.adaptive.prototypes import prototype_shares, prototypes, similarities, unit_rows
from dmin.methods.base import FewShotMethod, Traits
from dmin.methods.registry import register
from dmin.methods.search_space import SearchSpace, option


@register
class Nearest(FewShotMethod):
    """Cosine to the mean direction of the support vectors."""

    traits = Traits(
        name="nearest", title="nearest prototype", place=110, meta_trained=False, gives_cosines=True,
        search=SearchSpace((option("input_centre", False, True),)),
    )  # fmt: skip

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
        return cast(Tensor, prototypes(prepared, mask, row_weights))

    def query_side(self, query: Tensor) -> Tensor:
        """The queries, of norm 1."""
        return cast(Tensor, unit_rows(query))

    def score_sides(self, support: Tensor, queries: Tensor) -> Tensor:
        """Cosines [..., L, C]."""
        return cast(Tensor, similarities(support, queries))

    def contributions(
        self, prepared: Tensor, query: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> Tensor:
        """Each support example's exact share of each score: [..., L, C, K], adding up over K to `forward`."""
        return cast(Tensor, prototype_shares(prepared, query, mask, row_weights))

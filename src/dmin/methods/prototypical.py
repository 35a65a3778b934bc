"""Prototypical Networks: Snell, Swersky and Zemel, NeurIPS 2017.

A class is the mean of its examples, a query belongs to the nearest mean by squared Euclidean distance. All that is
learned is the embedding. With a frozen encoder that would be nothing, so a linear map that starts at the identity stands
for the part of the encoder that learns.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dmin.methods.base import FewShotMethod, Traits, masked_mean
from dmin.methods.registry import register
from dmin.methods.search_space import COMMON, SearchSpace, option, rates, scalar_rates
from dmin.routing import identity_linear


@register
class Prototypical(FewShotMethod):
    """Negative squared distance to the class mean, scaled.

    Args:
        dim: width of the vectors.
        project: learn a linear map of the vectors; False compares them as they are.
        squared_norm: typical squared norm of a vector; distances are divided by it, because those of BERT vectors are so
            large that softmax would saturate. A constant, so the nearest mean stays the nearest.
        seed: of the noise in the initial map.
    """

    traits = Traits(
        name="prototypical", title="Prototypical", place=90, learning_rate=3e-4,
        search=SearchSpace((
            rates(3e-4, 1e-4, 1e-3), scalar_rates(None, 1e-2), option("project", True, False), *COMMON,
        ), beyond=(rates(3e-5), scalar_rates(3e-2))),
        searched=(
            ("stage2.learning_rate", 1e-4), ("stage2.scalar_learning_rate", 1e-2), ("options.project", False),
            ("options.input_map", True), ("options.input_unit", True),
        ),
    )  # fmt: skip
    squared_norm: Tensor

    def __init__(self, dim: int, project: bool = True, *, squared_norm: float = 1.0, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.project = identity_linear(dim, generator) if project else nn.Identity()
        self.scale = nn.Parameter(torch.tensor(10.0))
        self.register_buffer("squared_norm", torch.tensor(float(squared_norm)))

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Scores [..., L, C], none above 0."""
        del base_rows
        prototypes = masked_mean(self.project(support), mask)  # [..., C, d]
        difference: Tensor = self.project(query).unsqueeze(-2) - prototypes.unsqueeze(-3)  # [..., L, C, d]
        return -self.scale * (difference * difference).sum(dim=-1) / self.squared_norm

"""Matching Networks: Vinyals et al., NeurIPS 2016, without full-context embeddings.

A softmax over the cosines to *all* support examples; the probability of a class is the sum over its examples. So a class
is never one point. The scores are already log-probabilities: a second softmax changes nothing, it must not be fed with
the probabilities themselves.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from dmin.methods.base import FewShotMethod, Traits, unit
from dmin.methods.registry import register
from dmin.methods.search_space import SearchSpace, option, rates, scalar_rates
from dmin.routing import identity_linear

PROBABILITY_FLOOR = 1e-7


@register
class Matching(FewShotMethod):
    """Log-probability of each class by attention over single examples.

    Args:
        dim: width of the vectors.
        project: learn a linear map of the vectors (see `prototypical`).
        seed: of the noise in the initial map.
    """

    traits = Traits(
        name="matching", title="Matching", place=100, joint=True, learning_rate=1e-4,
        search=SearchSpace((
            rates(1e-4, 3e-4, 1e-3), scalar_rates(None, 1e-2), option("project", True, False),
            option("input_centre", False, True),
        )),
    )  # fmt: skip

    def __init__(self, dim: int, project: bool = True, *, seed: int = 0) -> None:
        super().__init__()
        self.project = identity_linear(dim, torch.Generator().manual_seed(seed)) if project else nn.Identity()
        self.scale = nn.Parameter(torch.tensor(10.0))

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Log-probabilities [..., L, C]."""
        del base_rows
        rows, asked = unit(self.project(support)), unit(self.project(query))
        logits = self.scale * torch.einsum("...ckd,...ld->...lck", rows, asked)  # [..., L, C, K]
        if mask is not None:
            logits = logits.masked_fill(~mask.unsqueeze(-3), torch.finfo(logits.dtype).min)
        attention = logits.flatten(-2).softmax(dim=-1).view_as(logits)  # over all examples of all classes
        return attention.sum(dim=-1).clamp_min(PROBABILITY_FLOOR).log()

    def loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Mean negative log-probability of the right class."""
        return functional.nll_loss(scores.flatten(0, -2), labels.flatten())

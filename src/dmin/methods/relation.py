"""Relation Network: Sung et al., CVPR 2018, in the form that Induction Networks compare with (Geng et al., 2019).

The class vector is the *sum* of the examples, and a learned module, not a fixed distance, says how well class and query
go together. It is trained by squared error to 0 and 1. The sum grows with K: without `normalise` a model trained at one K
cannot be used at another.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from dmin.errors import ConfigError
from dmin.methods.base import FewShotMethod, Traits, masked_mean
from dmin.methods.registry import register
from dmin.methods.relation_module import PROJECTED, NeuralTensorLayer, relation_loss
from dmin.methods.search_space import COMMON, SearchSpace, option, rates
from dmin.routing import Initialisation


@register
class Relation(FewShotMethod):
    """Sum of examples, learned relation.

    Args:
        dim: width of the vectors.
        head: "tensor" is the neural tensor layer; "concat" is the original's two-layer perceptron on [class, query].
        pool: "sum" (the original) or "mean", which works at any K.
        slices: slices of the tensor layer, or hidden units of the perceptron.
        project: see `NeuralTensorLayer`.
        normalise: see `NeuralTensorLayer`.
        initialisation: see `NeuralTensorLayer`.
        seed: of the initial weights.
    """

    traits = Traits(
        name="relation", title="Rel. Net", place=30,
        search=SearchSpace((
            rates(1e-3, 1e-4, 3e-4), option("initialisation", "random", "identity"), option("pool", "sum", "mean"), *COMMON,
        ), beyond=(rates(3e-5, 1e-5), option("normalise", False), option("head", "concat"))),
        searched=(
            ("stage2.learning_rate", 3e-5), ("options.initialisation", "identity"), ("options.input_centre", True),
        ),
    )  # fmt: skip

    def __init__(
        self,
        dim: int,
        head: Literal["tensor", "concat"] = "tensor",
        pool: Literal["sum", "mean"] = "sum",
        slices: int = 100,
        project: int | None = PROJECTED,
        normalise: bool = True,
        *,
        initialisation: Initialisation = "random",
        seed: int = 0,
    ) -> None:
        super().__init__()
        if head not in ("tensor", "concat") or pool not in ("sum", "mean"):
            raise ConfigError(f"relation: head {head!r} and pool {pool!r}; use tensor or concat, sum or mean")
        generator = torch.Generator().manual_seed(seed)
        self.pool = pool
        self.tensor_layer = (
            NeuralTensorLayer(dim, slices, project, generator, normalise=normalise, initialisation=initialisation)
            if head == "tensor"
            else None
        )
        self.perceptron = None
        if head == "concat":
            self.perceptron = nn.Sequential(nn.LayerNorm(2 * dim), nn.Linear(2 * dim, slices), nn.ReLU(),
                                            nn.Linear(slices, 1))  # fmt: skip
            for weight in self.perceptron[1::2].parameters():
                with torch.no_grad():
                    weight.copy_(torch.randn(weight.shape, generator=generator) * (weight.shape[-1] ** -0.5))

    @property
    def note(self) -> str:
        """What differs from the published layer."""
        return self.tensor_layer.note if self.tensor_layer is not None else ""

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Relation scores in (0, 1), [..., L, C]."""
        del base_rows
        if self.pool == "mean":
            classes = masked_mean(support, mask)  # [..., C, d]
        else:
            classes = (support if mask is None else support * mask.unsqueeze(-1)).sum(dim=-2)
        if self.tensor_layer is not None:
            scores: Tensor = self.tensor_layer(classes, query)
            return scores
        assert self.perceptron is not None  # noqa: S101 (one of the two heads is there)
        shape = (*query.shape[:-1], classes.shape[-2], classes.shape[-1])
        pairs = [
            torch.broadcast_to(x, shape) for x in (classes.unsqueeze(-3), query.unsqueeze(-2))
        ]  # twice [..., L, C, d]
        return torch.sigmoid(self.perceptron(torch.cat(pairs, dim=-1)).squeeze(-1))

    def loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Squared error to 1 for the right class and 0 for the others."""
        return relation_loss(scores, labels)

"""Induction Networks: Geng et al., EMNLP 2019.

Dynamic routing over the examples of a class: each example's weight grows with its agreement with the class vector made
so far, so outliers fade. Unlike in DMIN neither a memory nor the query has a say. The relation of a class and a query is
scored pair by pair; public code that scores all classes through one matrix fixes C and leans on class order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dmin.methods.base import FewShotMethod, Traits
from dmin.methods.registry import register
from dmin.methods.relation_module import PROJECTED, NeuralTensorLayer, relation_loss
from dmin.methods.search_space import COMMON, SearchSpace, option, rates
from dmin.routing import Initialisation, identity_linear, squash


@register
class Induction(FewShotMethod):
    """Routing by agreement, then the neural tensor layer.

    Args:
        dim: width of the vectors.
        iterations: routing rounds.
        slices: slices of the tensor layer.
        project: see `NeuralTensorLayer`.
        normalise: see `NeuralTensorLayer`.
        squash_samples: squash the transformed examples (published version); False is the first preprint.
        initialisation: see `NeuralTensorLayer`.
        seed: of the initial weights.
    """

    traits = Traits(
        name="induction", title="Ind. Net", place=40,
        search=SearchSpace((rates(1e-3, 1e-4, 3e-4), option("initialisation", "random", "identity"), *COMMON), beyond=(
            rates(3e-5, 1e-5), option("normalise", False), option("squash_samples", False),
        )),
        searched=(
            ("stage2.learning_rate", 3e-5), ("options.initialisation", "identity"), ("options.input_map", True),
            ("options.input_centre", True),
        ),
    )  # fmt: skip

    def __init__(
        self,
        dim: int,
        iterations: int = 3,
        slices: int = 100,
        project: int | None = PROJECTED,
        normalise: bool = True,
        squash_samples: bool = True,
        *,
        initialisation: Initialisation = "random",
        seed: int = 0,
    ) -> None:
        super().__init__()
        if iterations < 1:
            raise ValueError(f"iterations={iterations}: at least 1 is needed")
        generator = torch.Generator().manual_seed(seed)
        self.transform = identity_linear(dim, generator)  # W_s, b_s, shared by all classes
        self.relation = NeuralTensorLayer(
            dim, slices, project, generator, normalise=normalise, initialisation=initialisation
        )
        self.iterations, self.squash_samples = iterations, squash_samples

    @property
    def note(self) -> str:
        """What differs from the published layer."""
        return self.relation.note

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Relation scores in (0, 1), [..., L, C]."""
        del base_rows
        scores: Tensor = self.relation(self.induce(support, mask)[0], query)
        return scores

    def induce(self, support: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Class vectors [..., C, d] and the couplings [..., C, K] that made them."""
        samples = self.transform(support)  # [..., C, K, d]
        if self.squash_samples:
            samples = squash(samples)
        agreement = torch.zeros_like(samples[..., 0])  # b [..., C, K]
        for _ in range(self.iterations):
            logits = agreement if mask is None else agreement.masked_fill(~mask, torch.finfo(agreement.dtype).min)
            couplings = logits.softmax(dim=-1)  # over the K examples
            classes = squash(torch.einsum("...ck,...ckd->...cd", couplings, samples))
            agreement = agreement + torch.einsum("...ckd,...cd->...ck", samples, classes)
        return classes, couplings

    def loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Squared error to 1 for the right class and 0 for the others."""
        return relation_loss(scores, labels)

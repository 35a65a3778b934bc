"""Dynamic Memory Induction Networks: Geng, Li, Li, Sun and Zhu, ACL 2020.

What was learned about the base classes is kept as a memory, one vector a class. A support example is first rewritten in
terms of that memory (Dynamic Memory Module, DMM); then the examples of a class are folded into one class vector, anew
for each query, so that the examples near the query count most (Query-enhanced Induction Module, QIM). Both are the same
routing with weights of their own. The score is a scaled cosine.

Unusual: the query itself is never rewritten, so routed class vectors must stay comparable with raw encoder vectors.
That is why the routing starts at the identity.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from dmin.errors import ConfigError
from dmin.methods.base import COSINE_EPSILON, FewShotMethod, SupportSide, cosine, masked_mean, unit
from dmin.routing import SQUASH_EPSILON, DynamicMemoryRouting, SoftmaxAxis
from dmin.routing.gram import GramQueries, GramRows, gram_cosine, gram_queries, gram_rows


class DMINQueries(NamedTuple):
    """Queries [..., L, d], and what the routing in Gram space needs of them; None where there is no routing."""

    query: Tensor
    gram: GramQueries | None


class DMIN(FewShotMethod):
    """Memory, induction by the query, cosine.

    Args:
        base_memory: W_base [N, d], a vector for each base class; tuned further unless `tune_memory` is False.
        capsules: number l of capsules in both routings; d / l numbers each.
        iterations: rounds r of both routings.
        softmax_over: axis of the couplings, "capsules" (the paper to the letter) or "memory".
        use_memory: False is the ablation "w/o DMM": the support vectors go to QIM as they are.
        use_query: False is the ablation "w/o QIM": the class vector is the mean of the adapted support vectors.
        share_routing: one set of routing weights for both modules.
        mask_own_rows: in training, hide the rows of the episode's own classes, which no novel class will have.
        memory_iterations: rounds of DMM alone; 1 is a static memory, whose couplings never adapt.
        tune_memory: False keeps W_base as stage 1 left it.
        scale: initial τ.
        seed: of the noise in the initial weights.
    """

    name: ClassVar[str] = "dmin"
    title: ClassVar[str] = "DMIN"
    needs_memory: ClassVar[bool] = True
    divides_scores: bool = True
    gives_cosines: bool = True
    learning_rate: ClassVar[float] = 1e-4  # 1e-3 drives the routing away from the identity before it learns

    def __init__(
        self,
        base_memory: Tensor,
        capsules: int = 4,
        iterations: int = 3,
        softmax_over: SoftmaxAxis = "capsules",
        use_memory: bool = True,
        use_query: bool = True,
        share_routing: bool = False,
        *,
        mask_own_rows: bool = False,
        memory_iterations: int | None = None,
        tune_memory: bool = True,
        scale: float = 10.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if base_memory.ndim != 2 or not len(base_memory):
            raise ValueError(f"base_memory has shape {list(base_memory.shape)}; [N, d] with N > 0 is needed")
        if memory_iterations is not None and memory_iterations < 1:
            raise ValueError(f"memory_iterations={memory_iterations}: at least 1 is needed")
        if share_routing and memory_iterations not in (None, iterations):
            raise ValueError("share_routing needs the same number of iterations in both modules")
        dim = base_memory.shape[1]
        generator = torch.Generator().manual_seed(seed)
        self.base_memory = nn.Parameter(base_memory.detach().clone().float(), requires_grad=use_memory and tune_memory)
        self.memory_routing: DynamicMemoryRouting | None = None
        self.query_routing: DynamicMemoryRouting | None = None
        if use_memory:
            rounds = memory_iterations or iterations
            self.memory_routing = DynamicMemoryRouting(dim, capsules, rounds, softmax_over, generator=generator)
        if use_query:
            shared = self.memory_routing if share_routing else None
            self.query_routing = shared or DynamicMemoryRouting(
                dim, capsules, iterations, softmax_over, generator=generator
            )
        self.scale = nn.Parameter(torch.tensor(float(scale)))
        self.mask_own_rows = mask_own_rows
        # In use, a class of more examples than this weighs like one of so many: the routing sums over the examples, and a
        # sum much larger than any in training saturates the capsules and distorts the class vector. None: the paper's sum.
        self.row_limit: int | None = None

    @classmethod
    def build(cls, dim: int, *, way: int, shot: int, base_memory: Tensor | None, seed: int, **options: Any) -> Self:
        """See `FewShotMethod.build`; the memory is needed, and must fit."""
        if base_memory is None:
            raise ConfigError("dmin needs a base memory: stage 1 makes it")
        if base_memory.shape[-1] != dim:
            raise ConfigError(f"the base memory is {base_memory.shape[-1]} wide, the vectors {dim}")
        return super().build(dim, way=way, shot=shot, base_memory=base_memory, seed=seed, **options)

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Scores τ·cos(e_q, e_c) [..., L, C], Eq. 12."""
        return self.score_prepared(self.adapt(support, base_rows), query, mask)

    @property
    def temperature(self) -> float:
        """τ: the scores are τ times a cosine."""
        return self.scale.item()

    def prepare(self, support: Tensor) -> Tensor:
        """DMM of each example on its own."""
        return self.adapt(support)

    def support_side(
        self, prepared: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> GramRows | SupportSide:
        """Adapted examples [..., C, K, d] in Gram space, which pays while examples are few; else as they are."""
        routing = self.query_routing
        if routing is None or prepared.shape[-2] >= routing.dim // routing.capsules:
            return SupportSide(prepared, mask, row_weights)
        return gram_rows(routing, prepared, mask, self._weights(prepared, mask, row_weights))

    def query_side(self, query: Tensor) -> DMINQueries:
        """The queries as they are, and in Gram space."""
        return DMINQueries(query, gram_queries(self.query_routing, query) if self.query_routing is not None else None)

    def score_sides(self, support: Any, queries: DMINQueries) -> Tensor:
        """QIM and cosine: [..., L, C]. In Gram space the number is the same, without making the class vectors."""
        if self.query_routing is not None and queries.gram is not None and isinstance(support, GramRows):
            return self.scale * gram_cosine(self.query_routing, support, queries.gram)
        class_vectors = self.induce(
            support.prepared, queries.query, support.mask, support.row_weights
        )  # [..., L, C, d]
        return self.scale * cosine(queries.query.unsqueeze(-2), class_vectors)

    def adapt(self, support: Tensor, base_rows: Tensor | None = None) -> Tensor:
        """DMM: e'_{c,s} = DMR(W_base, e_{c,s}), [..., C, K, d] -> [..., C, K, d]."""
        if self.memory_routing is None:
            return support
        own = None
        if self.mask_own_rows and self.training and base_rows is not None:
            numbers = torch.arange(len(self.base_memory), device=base_rows.device)
            own = (base_rows.unsqueeze(-1) == numbers).any(dim=-2)  # [..., N]
            own = ~own[..., None, None, :]  # [..., 1, 1, N]: True = not a class of this episode
        adapted: Tensor = self.memory_routing(self.base_memory, support, own)
        return adapted

    def memory_weights(self, support: Tensor) -> Tensor | None:
        """The final routing weights of DMM, mean over the capsules: [..., d] -> [..., N]."""
        if self.memory_routing is None:
            return None
        return self.memory_routing.route(self.base_memory, support).weights.mean(dim=-1)

    def base_scores(self, query: Tensor) -> Tensor:
        """τ·cos(e_q, W_base): the paper's classifier over the base classes, [..., L, N]."""
        return self.scale * unit(query) @ unit(self.base_memory).T

    def induce(
        self, adapted: Tensor, query: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> Tensor:
        """QIM: e_c = DMR({e'_{c,s}}, e_q) for each query and class, Eq. 10: -> [..., L or 1, C, d]."""
        weights = self._weights(adapted, mask, row_weights)
        if self.query_routing is None:
            if weights is not None:
                adapted = adapted * weights.unsqueeze(-1)
            return masked_mean(adapted, mask).unsqueeze(-3)  # [..., 1, C, d]
        class_vectors: Tensor = self.query_routing(
            adapted.unsqueeze(-4),  # [..., 1, C, K, d]
            query.unsqueeze(-2),  # [..., L, 1, d]
            None if mask is None else mask.unsqueeze(-3),  # [..., 1, C, K]
            None if weights is None else weights.unsqueeze(-3),  # [..., 1, C, K]
        )
        return class_vectors

    def _weights(self, adapted: Tensor, mask: Tensor | None, row_weights: Tensor | None) -> Tensor | None:
        """What each row counts [..., C, K]: its own weight, and all of a class's together at most `row_limit`."""
        if self.row_limit is None:
            return row_weights
        weights = torch.ones_like(adapted[..., 0]) if row_weights is None else row_weights
        shown = weights if mask is None else weights * mask
        total = shown.sum(dim=-1, keepdim=True).clamp_min(COSINE_EPSILON)
        return weights * (self.row_limit / total).clamp_max(1.0)

    def contributions(
        self, prepared: Tensor, query: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> Tensor:
        """Each adapted example's exact share of each score: [..., L, C, K], adding up over K to `forward`.

        A class vector is, capsule by capsule, s_j·Σ_i w_ij·m̂_ij, so its dot product with the query splits over i.
        """
        weights = self._weights(prepared, mask, row_weights)  # [..., C, K]
        if self.query_routing is None:
            rows = prepared if weights is None else prepared * weights.unsqueeze(-1)
            parts = (rows if mask is None else rows * mask.unsqueeze(-1)).unsqueeze(-4)  # [..., 1, C, K, d]
        else:
            routing = self.query_routing
            memory, asked = prepared.unsqueeze(-4), query.unsqueeze(-2)
            shown = None if mask is None else mask.unsqueeze(-3)
            found = routing.route(memory, asked, shown, None if weights is None else weights.unsqueeze(-3)).weights
            weighed = found.unsqueeze(-1) * routing.capsule_vectors(memory)  # [..., L, C, K, l, v]; 0 where masked
            total = weighed.sum(dim=-3, keepdim=True)  # [..., L, C, 1, l, v]
            squared = (total * total).sum(dim=-1, keepdim=True)
            shrink = squared / (1 + squared) / torch.sqrt(squared + SQUASH_EPSILON)  # squash(x) = shrink(x)·x
            parts = (weighed * shrink).flatten(-2)  # [..., L, C, K, d]
        size: Tensor = torch.linalg.vector_norm(parts.sum(dim=-2), dim=-1).clamp_min(COSINE_EPSILON)  # [..., L, C]
        along = torch.einsum("...lckd,...ld->...lck", parts.expand(*query.shape[:-1], *parts.shape[-3:]), unit(query))
        return self.scale * along / size.unsqueeze(-1)

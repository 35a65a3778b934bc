"""Dynamic Memory Induction Networks: Geng, Li, Li, Sun and Zhu, ACL 2020.

What was learned about the base classes is kept as a memory, one vector per class. A support example is first rewritten in
terms of that memory (Dynamic Memory Module, DMM: `adapt`); then the examples of a class are folded into one class vector,
anew for each query, so that the examples near the query count most (Query-enhanced Induction Module, QIM: `induce`). Both
are the same Dynamic Memory Routing (DMR: Algorithm 1, `dmin.routing`) with weights of their own. The score is a scaled
cosine (`cosine`).

Unusual: the query itself is never rewritten, so routed class vectors must stay comparable with raw encoder vectors.
That is why the routing starts at the identity.

Letters in shapes: C classes, K examples per class, L queries, N base classes, d width, l capsules of v = d / l numbers. The
memory W_base is Section 3.2 of the paper; where the paper can be read in two ways, docs/explanation/reading-of-the-paper.md
says what was chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from dmin.methods.abilities import SupportSide
from dmin.methods.base import COSINE_EPSILON, FewShotMethod, Traits, cosine, masked_mean, unit
from dmin.methods.dmin_gram import (
    DMINQueries,
    GramRows,
    gram_cosine,
    gram_cosines,
    gram_pays,
    gram_queries,
    gram_rows,
)
from dmin.methods.registry import register
from dmin.methods.search_space import COMMON, SearchSpace, option, rates
from dmin.routing import SQUASH_EPSILON, DynamicMemoryRouting, Initialisation, SoftmaxAxis

MEMORY_CAPSULES, QUERY_CAPSULES = 4, 4  # the defaults
NARROWEST = 3  # numbers per capsule


@register
class DMIN(FewShotMethod):
    """Memory, induction by the query, cosine.

    Args:
        base_memory: W_base [N, d], a vector for each base class; tuned further unless `tune_memory` is False.
        capsules: number l of capsules in both routings, d / l numbers each; None leaves it to the next two.
        memory_capsules: of DMM; None is `capsules`, and without that 4, or fewer where 4 do not divide the width. In each
            capsule DMM's output lies in the span of the N base rows, so wide capsules lose what N rows cannot span.
        query_capsules: of QIM; likewise.
        iterations: rounds r of both routings.
        softmax_over: axis of the couplings, "capsules" (the paper to the letter) or "memory".
        use_memory: False is the ablation "w/o DMM": the support vectors go to QIM as they are.
        use_query: False is the ablation "w/o QIM": the class vector is the mean of the adapted support vectors.
        share_routing: one set of routing weights for both modules.
        mask_own_rows: in training, hide the rows of the episode's own classes, which no novel class will have.
        memory_iterations: rounds of DMM alone; 1 is a static memory, whose couplings never adapt.
        tune_memory: False keeps W_base as stage 1 left it.
        scale: initial τ.
        tau_learning_rate: of τ in stage 2, where `stage2.scalar_learning_rate` gives none; None is that of the other
            weights, at which τ hardly moves.
        initialisation: "identity" starts both routings at the identity plus noise, "random" at Glorot's uniform weights.
        seed: of the noise in the initial weights.
    """

    traits = Traits(
        name="dmin", title="DMIN", place=70, needs_memory=True, gives_cosines=True,
        learning_rate=1e-4,  # 1e-3 drives the routing away from the identity before it learns
        search=SearchSpace((
            rates(1e-4, 3e-4, 1e-3), option("tau_learning_rate", None, 1e-2), option("memory_capsules", None, 16, 32, 64),
            option("query_capsules", None, 1, 8), option("softmax_over", "capsules", "memory"), *COMMON,
        ), beyond=(
            rates(3e-5), option("tau_learning_rate", 3e-2), option("memory_capsules", 96, 128),
            option("mask_own_rows", True), option("tune_memory", False),
        )),
        searched=(
            ("options.tau_learning_rate", 1e-2), ("options.memory_capsules", 64), ("options.query_capsules", 1),
            ("options.softmax_over", "memory"), ("options.input_map", True), ("options.input_unit", True),
            ("options.input_centre", True),
        ),
        early_options=(("capsules", 4),),
    )  # fmt: skip

    def __init__(
        self,
        base_memory: Tensor,
        capsules: int | None = None,
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
        memory_capsules: int | None = None,
        query_capsules: int | None = None,
        tau_learning_rate: float | None = None,
        initialisation: Initialisation = "identity",
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
        in_memory, in_query = capsule_counts(dim, capsules, memory_capsules, query_capsules, share_routing)
        generator = torch.Generator().manual_seed(seed)
        self.base_memory = nn.Parameter(base_memory.detach().clone().float(), requires_grad=use_memory and tune_memory)
        self.memory_routing: DynamicMemoryRouting | None = None
        self.query_routing: DynamicMemoryRouting | None = None
        same: dict[str, Any] = {
            "softmax_over": softmax_over, "initialisation": initialisation, "generator": generator,
        }  # fmt: skip
        if use_memory:
            self.memory_routing = DynamicMemoryRouting(dim, in_memory, memory_iterations or iterations, **same)
        if use_query:
            shared = self.memory_routing if share_routing else None
            self.query_routing = shared or DynamicMemoryRouting(dim, in_query, iterations, **same)
        if tau_learning_rate is not None:
            if tau_learning_rate <= 0:
                raise ValueError(f"tau_learning_rate={tau_learning_rate}: a number above 0 is needed")
            self.traits = replace(self.traits, scalar_learning_rate=tau_learning_rate)
        self.scale = nn.Parameter(torch.tensor(float(scale)))  # τ
        self.mask_own_rows = mask_own_rows
        self._most_examples: int | None = None  # see `limit_support`

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Scores s_{q,c} [..., L, C]: DMM, QIM, cosine."""
        adapted = self.adapt(support, base_rows)  # e'_{c,s} [..., C, K, d]
        if gram_pays(self.query_routing, adapted):  # the two steps below in one: the same scores, faster for small K
            weights = self._row_weights(adapted, mask)
            return self.scale * gram_cosines(self.query_routing, adapted, query, mask, weights)
        class_vectors = self.induce(adapted, query, mask)  # e_c [..., L, C, d]
        return self.cosine(query, class_vectors)  # [..., L, C]

    def adapt(self, support: Tensor, base_rows: Tensor | None = None) -> Tensor:
        """DMM: e'_{c,s} = DMR(W_base, e_{c,s}) (Eq. 1 with M = W_base), [..., C, K, d] -> [..., C, K, d]."""
        if self.memory_routing is None:
            return support
        shown = None
        if self.mask_own_rows and self.training and base_rows is not None:
            numbers = torch.arange(len(self.base_memory), device=base_rows.device)
            own = (base_rows.unsqueeze(-1) == numbers).any(dim=-2)  # [..., N]
            shown = ~own[..., None, None, :]  # [..., 1, 1, N]: True = not a class of this episode
        adapted: Tensor = self.memory_routing(self.base_memory, support, shown)
        return adapted

    def induce(
        self, adapted: Tensor, query: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> Tensor:
        """QIM: e_c = DMR({e'_{c,s}}, e_q) for each query and class, Eq. 10: -> [..., L or 1, C, d]."""
        weights = self._row_weights(adapted, mask, row_weights)  # [..., C, K]
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

    def cosine(self, query: Tensor, class_vectors: Tensor) -> Tensor:
        """s_{q,c} = τ·cos(e_q, e_c), Eq. 12: [..., L, d] and [..., L or 1, C, d] -> [..., L, C]."""
        return self.scale * cosine(query.unsqueeze(-2), class_vectors)

    # Abilities (`dmin.methods.abilities`)

    @property
    def temperature(self) -> float:
        """τ: the scores are τ times a cosine."""
        return self.scale.item()

    def start_from_stage1(self, scale: float | None, mean: Tensor) -> None:
        """Start τ at stage 1's."""
        del mean
        if scale is not None:
            self.scale.data.fill_(scale)

    def base_scores(self, query: Tensor) -> Tensor:
        """τ·cos(e_q, W_base), Eq. 11: the paper's classifier over the base classes, [..., L, N]."""
        return self.scale * unit(query) @ unit(self.base_memory).T

    def memory_module(self) -> Callable[[Tensor], Tensor] | None:
        """DMM, unless it is switched off."""
        return self.adapt if self.memory_routing is not None else None

    def memory_weights(self, support: Tensor) -> Tensor | None:
        """The final routing weights of DMM, mean over the capsules: [..., d] -> [..., N]."""
        if self.memory_routing is None:
            return None
        return self.memory_routing.route(self.base_memory, support).weights.mean(dim=-1)

    def prepare(self, support: Tensor) -> Tensor:
        """DMM of each example on its own."""
        return self.adapt(support)

    def support_side(
        self, prepared: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> GramRows | SupportSide:
        """Adapted examples [..., C, K, d] in Gram space where that pays; else as they are."""
        if gram_pays(self.query_routing, prepared):
            return gram_rows(self.query_routing, prepared, mask, self._row_weights(prepared, mask, row_weights))
        return SupportSide(prepared, mask, row_weights)

    def query_side(self, query: Tensor) -> DMINQueries:
        """The queries as they are, and in Gram space."""
        return DMINQueries(query, gram_queries(self.query_routing, query) if self.query_routing is not None else None)

    def score_sides(self, support: Any, queries: DMINQueries) -> Tensor:
        """QIM and cosine, [..., L, C], in the form that `support_side` chose."""
        if self.query_routing is not None and queries.gram is not None and isinstance(support, GramRows):
            return self.scale * gram_cosine(self.query_routing, support, queries.gram)
        return self.cosine(
            queries.query, self.induce(support.prepared, queries.query, support.mask, support.row_weights)
        )

    def limit_support(self, most: int) -> None:
        """Let a class of more than `most` examples weigh like one of `most`; the paper has no such limit.

        The routing sums over the examples, and a sum much larger than any in training saturates the capsules and
        distorts the class vector.
        """
        self._most_examples = most

    def _row_weights(self, adapted: Tensor, mask: Tensor | None, given: Tensor | None = None) -> Tensor | None:
        """The weight of each row [..., C, K]: the given one, scaled so that no class exceeds `limit_support`."""
        if self._most_examples is None:
            return given
        weights = torch.ones_like(adapted[..., 0]) if given is None else given
        shown = weights if mask is None else weights * mask
        total = shown.sum(dim=-1, keepdim=True).clamp_min(COSINE_EPSILON)  # [..., C, 1]
        return weights * (self._most_examples / total).clamp_max(1.0)

    def contributions(
        self, prepared: Tensor, query: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> Tensor:
        """Each adapted example's exact share of each score: [..., L, C, K], adding up over K to `forward`.

        A class vector is, capsule by capsule, s_j·Σ_i w_ij·m̂_ij, so its dot product with the query splits over i.
        """
        weights = self._row_weights(prepared, mask, row_weights)  # [..., C, K]
        if self.query_routing is None:
            rows = prepared if weights is None else prepared * weights.unsqueeze(-1)
            parts = (rows if mask is None else rows * mask.unsqueeze(-1)).unsqueeze(-4)  # [..., 1, C, K, d]
        else:
            routing = self.query_routing
            memory, asked = prepared.unsqueeze(-4), query.unsqueeze(-2)  # [..., 1, C, K, d] and [..., L, 1, d]
            shown = None if mask is None else mask.unsqueeze(-3)
            found = routing.route(memory, asked, shown, None if weights is None else weights.unsqueeze(-3)).weights
            weighed = found.unsqueeze(-1) * routing.capsule_vectors(memory)  # [..., L, C, K, l, v]; 0 where masked
            total = weighed.sum(dim=-3, keepdim=True)  # [..., L, C, 1, l, v]
            squared = (total * total).sum(dim=-1, keepdim=True)  # [..., L, C, 1, l, 1]
            shrink = squared / (1 + squared) / torch.sqrt(squared + SQUASH_EPSILON)  # squash(x) = shrink(x)·x
            parts = (weighed * shrink).flatten(-2)  # [..., L, C, K, d]
        size: Tensor = torch.linalg.vector_norm(parts.sum(dim=-2), dim=-1).clamp_min(COSINE_EPSILON)  # [..., L, C]
        along = torch.einsum("...lckd,...ld->...lck", parts.expand(*query.shape[:-1], *parts.shape[-3:]), unit(query))
        return self.scale * along / size.unsqueeze(-1)


def capsule_counts(
    dim: int, both: int | None, memory: int | None, query: int | None, shared: bool = False
) -> tuple[int, int]:
    """The numbers of capsules (of DMM, of QIM) for vectors of this width; what is None is filled in.

    Raises:
        ValueError: for unequal counts where one routing stands for both modules.
    """
    in_memory = memory if memory is not None else both
    in_query = query if query is not None else both
    if shared:  # one count alone stands for both modules
        in_memory, in_query = (
            in_query if in_memory is None else in_memory,
            in_memory if in_query is None else in_query,
        )
    if in_memory is None:
        in_memory = fitting_capsules(dim, MEMORY_CAPSULES)
    if in_query is None:
        in_query = fitting_capsules(dim, QUERY_CAPSULES)
    if shared and in_memory != in_query:
        raise ValueError(
            f"share_routing needs as many capsules in both modules: memory_capsules={in_memory}, "
            f"query_capsules={in_query}; give capsules alone"
        )
    return in_memory, in_query


def fitting_capsules(dim: int, most: int) -> int:
    """The largest number of capsules up to `most` that divides the width into at least `NARROWEST` numbers each."""
    return max((count for count in range(1, most + 1) if dim % count == 0 and dim // count >= NARROWEST), default=1)

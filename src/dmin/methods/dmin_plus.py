"""DMIN-plus: the ideas of Dynamic Memory Induction Networks in a form that holds on a strong sentence encoder. Ours.

Kept from DMIN: a memory of base classes that support examples are read against, and a class vector that is made anew for
each query, from the examples near it. Changed, each by one switch: a linear map brings examples and queries into one
space (`project`); the memory is added to an example through a gate that starts closed, so that it can only help
(`use_memory`); the examples of a class are weighed by a softmax over their cosines with the query (`use_query`).

Unusual: no class vector is ever written down. With w the weights, m_i the rows and q the query, all of norm 1, the score
is τ·(Σ w_i m_i·q) / sqrt(wᵀGw), where G holds the dot products of the class's own rows: the cost does not depend on d.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from dmin.errors import ConfigError
from dmin.methods.base import COSINE_EPSILON, EpisodeTensors, FewShotMethod, unit
from dmin.routing import identity_linear

CONTRAST_STEP = 0.1


class PlusRows(NamedTuple):
    """The support side of scoring, which does not depend on the query."""

    rows: Tensor  # m [..., C, K, d], of norm 1
    gram: Tensor  # m·m [..., C, K, K]
    counts: Tensor  # logarithm of what each row counts [..., C, K, 1], far below 0 where masked
    against: Tensor | None = None  # what tells each class from the others [..., C, d]


class DMINPlus(FewShotMethod):
    """Projection, gated memory, induction by the query, cosine.

    Args:
        base_memory: W_base [N, d], a vector for each base class.
        project: learn a linear map of examples, queries and memory; False compares them as they are.
        use_memory: read each example against the memory; False leaves it as it is.
        use_query: weigh the examples of a class by the query; False weighs them alike (a prototype).
        sharpness: γ, how much more an example near the query counts; not learned, because episodes of a training set are
            easier than the classes of one domain and would teach too small a number.
        mask_own_rows: in training, hide the rows of the episode's own classes, which no novel class will have.
        scale: initial τ.
        seed: of the noise in the initial map.
    """

    name: ClassVar[str] = "dmin-plus"
    title: ClassVar[str] = "DMIN-plus"
    needs_memory: ClassVar[bool] = True
    learns_names: ClassVar[bool] = True
    divides_scores: bool = True
    gives_cosines: bool = True
    learning_rate: ClassVar[float] = 1e-4
    scalar_learning_rate: ClassVar[float] = 1e-2

    def __init__(
        self,
        base_memory: Tensor,
        project: bool = True,
        use_memory: bool = True,
        use_query: bool = True,
        *,
        sharpness: float = 3.0,
        contrast: int = 0,
        mask_own_rows: bool = True,
        scale: float = 20.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        dim = base_memory.shape[1]
        generator = torch.Generator().manual_seed(seed)
        self.base_memory = nn.Parameter(base_memory.detach().clone().float(), requires_grad=use_memory)  # [N, d]
        self.project = identity_linear(dim, generator) if project else nn.Identity()
        self.read_map = identity_linear(dim, generator) if use_memory else None
        self.gate = nn.Parameter(torch.tensor(0.0), requires_grad=use_memory)
        self.read_scale = nn.Parameter(torch.tensor(10.0), requires_grad=use_memory)
        self.log_name_weight = nn.Parameter(torch.tensor(0.0))
        self.scale = nn.Parameter(torch.tensor(float(scale)))
        self.sharpness, self.use_query, self.mask_own_rows = sharpness, use_query, mask_own_rows
        self.contrast = contrast
        if contrast:
            self.contrast_scale = nn.Parameter(torch.tensor(2.3))  # ln c
            self.contrast_weight = nn.Parameter(torch.tensor(0.5))
            self.joint, self.divides_scores, self.gives_cosines = True, False, False

    @classmethod
    def build(cls, dim: int, *, way: int, shot: int, base_memory: Tensor | None, seed: int, **options: Any) -> Self:
        """See `FewShotMethod.build`; the memory is needed, and must fit."""
        if base_memory is None:
            raise ConfigError("dmin-plus needs a base memory: stage 1 makes it")
        if base_memory.ndim != 2 or not len(base_memory) or base_memory.shape[-1] != dim:
            raise ConfigError(f"the base memory has shape {list(base_memory.shape)}; [N, {dim}] with N > 0 is needed")
        return super().build(dim, way=way, shot=shot, base_memory=base_memory, seed=seed, **options)

    def forward(
        self,
        support: Tensor,
        query: Tensor,
        mask: Tensor | None = None,
        base_rows: Tensor | None = None,
        row_weights: Tensor | None = None,
    ) -> Tensor:
        """Scores τ·cos(q, e_c(q)) [..., L, C]."""
        return self.score_prepared(self.adapt(support, base_rows), query, mask, row_weights)

    @property
    def temperature(self) -> float:
        """τ: the scores are τ times a cosine."""
        return self.scale.item()

    @property
    def name_weight(self) -> float:
        """How many examples a class's name is worth, as training found."""
        return self.log_name_weight.exp().item()

    def prepare(self, support: Tensor) -> Tensor:
        """Each example on its own: mapped, read against the memory, of norm 1."""
        return self.adapt(support)

    def adapt(self, support: Tensor, base_rows: Tensor | None = None) -> Tensor:
        """m = unit(x + g·R(read)) with x = unit(P·e), [..., C, K, d] -> [..., C, K, d]."""
        rows = unit(self.project(support))
        if self.read_map is None:
            return rows
        memory = unit(self.project(self.base_memory))  # [N, d]
        attention = self._attention(rows, memory, base_rows)  # [..., C, K, N]
        return unit(rows + self.gate * (attention @ self.read_map(memory)))

    def base_scores(self, query: Tensor) -> Tensor:
        """τ·cos(q, W_base), both mapped: [..., L, N]."""
        return self.scale * unit(self.project(query)) @ unit(self.project(self.base_memory)).T

    def memory_weights(self, support: Tensor) -> Tensor | None:
        """How much of each base class each example read: [..., N], times the gate."""
        if self.read_map is None:
            return None
        rows, memory = unit(self.project(support)), unit(self.project(self.base_memory))
        return self.gate * self._attention(rows, memory, None)

    def _attention(self, rows: Tensor, memory: Tensor, base_rows: Tensor | None) -> Tensor:
        logits = self.read_scale * rows @ memory.T  # [..., C, K, N]
        if self.mask_own_rows and self.training and base_rows is not None:
            numbers = torch.arange(len(memory), device=rows.device)
            own = (base_rows.unsqueeze(-1) == numbers).any(dim=-2)  # [..., N]
            logits = logits.masked_fill(own[..., None, None, :], torch.finfo(logits.dtype).min)
        return logits.softmax(dim=-1)

    def support_side(self, prepared: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None) -> PlusRows:
        """Adapted examples [..., C, K, d] with their Gram matrices; what a row counts becomes a term of its logit."""
        counts = torch.zeros_like(prepared[..., :1])  # [..., C, K, 1]
        if row_weights is not None:
            counts = row_weights.clamp_min(COSINE_EPSILON).log().unsqueeze(-1)
        if mask is not None:
            counts = counts.masked_fill(~mask.unsqueeze(-1), torch.finfo(counts.dtype).min)
        against = self._contrast(prepared, mask, row_weights) if self.contrast else None
        return PlusRows(prepared, prepared @ prepared.transpose(-1, -2), counts, against)

    def query_side(self, query: Tensor) -> Tensor:
        """Mapped queries of norm 1, one a column: [..., d, L]."""
        return unit(self.project(query)).transpose(-1, -2)

    def score_sides(self, support: PlusRows, queries: Tensor) -> Tensor:
        """Induction and cosine: [..., L, C]."""
        scores = self.scale * self._shares(support, queries).sum(dim=-2).transpose(-1, -2)
        if support.against is None:
            return scores
        return scores + self.contrast_weight * (support.against @ queries).transpose(-1, -2)

    def _contrast(self, prepared: Tensor, mask: Tensor | None, row_weights: Tensor | None) -> Tensor:
        """Directions that tell the classes apart, c·Σ_i a_ic·m_i over the rows of all classes: [..., C, d].

        Each round a row's couplings a_i move towards what is wrong about it: 1 for its own class, less the probability of
        each class as the directions have it now. A row that another class claims is pushed away from that class.
        """
        classes, size = prepared.shape[-3:-1]
        rows = prepared.flatten(-3, -2)  # [..., C·K, d]
        counts = torch.ones_like(prepared[..., 0]) if row_weights is None else row_weights.expand(prepared.shape[:-1])
        counts = (counts if mask is None else counts * mask).flatten(-2).unsqueeze(-1)  # [..., C·K, 1]
        own = torch.eye(classes, device=rows.device, dtype=rows.dtype).repeat_interleave(size, dim=0)  # [C·K, C]
        near = self.contrast_scale.exp() * rows @ rows.transpose(-1, -2)  # [..., C·K, C·K]
        couplings = (own - 1 / classes) * counts * CONTRAST_STEP
        for _ in range(self.contrast - 1):
            wrong = own - (near @ couplings).softmax(dim=-1)
            couplings = couplings + CONTRAST_STEP * (wrong * counts - couplings)
        return self.contrast_scale.exp() * couplings.transpose(-1, -2) @ rows

    def contributions(
        self, prepared: Tensor, query: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> Tensor:
        """Each adapted example's exact share of each score: [..., L, C, K], adding up over K to `forward`."""
        shares = self._shares(self.support_side(prepared, mask, row_weights), self.query_side(query))
        return self.scale * shares.movedim(-1, -3)

    def _shares(self, support: PlusRows, queries: Tensor) -> Tensor:
        """w_i·(m_i·q) / |Σ w_i m_i|, [..., C, K, L]: queries lie last, so that each step runs along contiguous memory."""
        near = support.rows.flatten(-3, -2) @ queries  # m_i·q, [..., C·K, L]
        near = near.view(*near.shape[:-2], *support.rows.shape[-3:-1], -1)  # [..., C, K, L]
        logits = torch.add(support.counts, near, alpha=self.sharpness) if self.use_query else support.counts
        weights = logits.softmax(dim=-2)  # [..., C, K, L]; L is 1 where the query has no say
        squared = ((support.gram @ weights) * weights).sum(dim=-2, keepdim=True)  # |e_c|², [..., C, 1, L]
        return weights * near * torch.rsqrt(squared.clamp_min(COSINE_EPSILON**2))

    def episode_loss(self, episodes: EpisodeTensors) -> tuple[Tensor, Tensor]:
        """Cross-entropy; where the last support row is the class's name, it weighs what is learned for it."""
        row_weights = None
        if episodes.named:
            counts = torch.zeros(episodes.support.shape[:-1], device=self.scale.device)  # [B, C, K + 1], as logarithms
            counts[..., -1] = self.log_name_weight
            row_weights = counts.exp()
        scores = self(episodes.support, episodes.query, base_rows=episodes.base_rows, row_weights=row_weights)
        return self.loss(scores, episodes.labels), scores

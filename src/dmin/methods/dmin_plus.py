"""DMIN-plus: the ideas of Dynamic Memory Induction Networks in a form that holds on a strong sentence encoder. Ours.

Kept from DMIN: a memory of base classes that classes are read against, and a class vector that is made anew for each
query, from the examples near it. Changed, each by one switch: a text is the last and the middle layer of its encoder
(`pooling`); a linear map brings examples and queries into one space (`project`), and starts by subtracting the mean of the
base texts (`centre`); a class that lies near base classes lies near everything, so that nearness is subtracted from its
scores (`use_memory`, a hubness correction); the examples of a class are weighed by a softmax over their cosines with the
query (`use_query`).

Unusual: no class vector is ever written down. With w the weights, m_i the rows and q the query, all of norm 1, the cosine
is (Σ w_i m_i·q) / sqrt(wᵀGw), where G holds the dot products of the class's own rows: the cost does not depend on d.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dmin.methods.base import COSINE_EPSILON, EpisodeTensors, FewShotMethod, Traits, unit
from dmin.methods.registry import register
from dmin.methods.search_space import SearchSpace, option, rates
from dmin.routing import identity_linear

CONTRAST_STEP = 0.1
MEMORY_SHARPNESS = 10.0  # of the softmax over base classes: how much the nearest of them count


class PlusRows(NamedTuple):
    """The support side of scoring, which does not depend on the query."""

    rows: Tensor  # m [..., C, K, d], of norm 1
    gram: Tensor  # m·m [..., C, K, K]
    counts: Tensor  # logarithm of what each row counts [..., C, K, 1], far below 0 where masked
    sharpness: Tensor  # γ times the root of what the rows count together [..., C, 1, 1]
    nearness: Tensor | None = None  # what is subtracted from each class's cosines [..., C, 1]
    against: Tensor | None = None  # what tells each class from the others [..., C, d]


@register
class DMINPlus(FewShotMethod):
    """Projection, induction by the query, cosine, less the nearness to the memory.

    Args:
        base_memory: W_base [N, d], a vector for each base class.
        project: learn a linear map of examples, queries and memory; False compares them as they are.
        centre: let the map start by taking the mean of the base texts away, which all texts share and no class is told by.
        use_memory: hold each class against the memory; False scores it by the cosine alone.
        use_query: weigh the examples of a class by the query; False weighs them alike (a prototype).
        sharpness: γ, how much more an example near the query counts, times the root of how many there are: of many, a few
            near ones are enough. Not learned, because episodes of a training set are easier than the classes of one
            domain and would teach too small a number.
        contrast: so many rounds that find directions that tell the classes apart; then they depend on each other. 0: none.
        memory_weight: β, how much of a class's nearness to the base classes is subtracted, divided by how many examples it
            has: one may lie near everything by chance, several together hardly. Not learned, and left out while training,
            where the classes of an episode are base classes themselves.
        scale: initial τ.
        seed: of the noise in the initial map.
    """

    traits = Traits(
        name="dmin-plus", title="DMIN-plus", place=80, needs_memory=True, pooling="layers", gives_cosines=True,
        learning_rate=1e-4, scalar_learning_rate=1e-2,
        search=SearchSpace((
            rates(1e-4, 3e-4, 1e-3), option("centre", True, False), option("sharpness", 1.25, 0.6, 2.5, 5.0),
            option("memory_weight", 0.15, 0.0, 0.3),
        ), beyond=(rates(3e-5), option("contrast", 20))),
    )  # fmt: skip

    def __init__(
        self,
        base_memory: Tensor,
        project: bool = True,
        centre: bool = True,
        use_memory: bool = True,
        use_query: bool = True,
        *,
        sharpness: float = 1.25,
        contrast: int = 0,
        memory_weight: float = 0.15,
        scale: float = 20.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        dim = base_memory.shape[1]
        generator = torch.Generator().manual_seed(seed)
        self.base_memory = nn.Parameter(base_memory.detach().clone().float(), requires_grad=False)  # [N, d]
        self.project = identity_linear(dim, generator) if project else nn.Identity()
        self.log_name_weight = nn.Parameter(torch.tensor(0.0))
        self.scale = nn.Parameter(torch.tensor(float(scale)))
        self.sharpness, self.use_query, self.centre = sharpness, use_query, centre and project
        self.memory_weight = memory_weight if use_memory else 0.0
        self.contrast = contrast
        if contrast:
            self.contrast_scale = nn.Parameter(torch.tensor(2.3))  # ln c
            self.contrast_weight = nn.Parameter(torch.tensor(0.5))
            self.traits = replace(self.traits, joint=True, gives_cosines=False)

    def start_from_stage1(self, scale: float | None, mean: Tensor) -> None:
        """Start τ at stage 1's, and the map at P(e - mean)."""
        if scale is not None:
            self.scale.data.fill_(scale)
        if self.centre and isinstance(self.project, nn.Linear):
            with torch.no_grad():
                self.project.bias.copy_(-self.project.weight @ mean.to(self.project.weight))

    def forward(
        self,
        support: Tensor,
        query: Tensor,
        mask: Tensor | None = None,
        base_rows: Tensor | None = None,
        row_weights: Tensor | None = None,
    ) -> Tensor:
        """Scores τ·(cos(q, e_c(q)) - β·nearness of c) [..., L, C]."""
        del base_rows
        return self.score_sides(self.support_side(self.prepare(support), mask, row_weights), self.query_side(query))

    @property
    def temperature(self) -> float:
        """τ: the scores are τ times a cosine, less what the memory subtracts."""
        return self.scale.item()

    def learned_name_weight(self) -> float:
        """How many examples a class's name is worth."""
        return self.log_name_weight.exp().item()

    def prepare(self, support: Tensor) -> Tensor:
        """Each example on its own: mapped, of norm 1."""
        return unit(self.project(support))

    def base_scores(self, query: Tensor) -> Tensor:
        """τ·cos(q, W_base), both mapped: [..., L, N].

        Stage 1 leaves open what its rows have in common, so with `centre` they are taken around their own mean.
        """
        rows = self.project(self.base_memory)  # [N, d]
        if self.centre and len(rows) > 1:
            rows = rows - rows.mean(dim=0)
        return self.scale * unit(self.project(query)) @ unit(rows).T

    def memory_weights(self, support: Tensor) -> Tensor | None:
        """What each base class subtracts from the cosines of a class of examples [K, d], by each of them: [K, N]."""
        if not self.memory_weight:
            return None
        return -self.memory_weight * self._shares_of_memory(unit(self.project(support))) / len(support)

    def support_side(self, prepared: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None) -> PlusRows:
        """Prepared examples [..., C, K, d] with their Gram matrices; what a row counts becomes a term of its logit."""
        counts = torch.zeros_like(prepared[..., :1])  # [..., C, K, 1]
        if row_weights is not None:
            counts = row_weights.clamp_min(COSINE_EPSILON).log().unsqueeze(-1)
        if mask is not None:
            counts = counts.masked_fill(~mask.unsqueeze(-1), torch.finfo(counts.dtype).min)
        against = self._contrast(prepared, mask, row_weights) if self.contrast else None
        examples = counts.exp().sum(dim=-2, keepdim=True)  # what the rows count together [..., C, 1, 1]
        sharpness = self.sharpness * examples.sqrt()
        nearness = None
        if self.memory_weight and not self.training:
            nearness = self.memory_weight * self._nearness(prepared, counts) / examples.squeeze(-1)
        return PlusRows(prepared, prepared @ prepared.transpose(-1, -2), counts, sharpness, nearness, against)

    def _nearness(self, prepared: Tensor, counts: Tensor) -> Tensor:
        """The cosine of each class's prototype with the base classes nearest to it: [..., C, 1]."""
        prototypes = unit((counts.softmax(dim=-2) * prepared).sum(dim=-2))  # [..., C, d]
        return self._shares_of_memory(prototypes).sum(dim=-1, keepdim=True)

    def _shares_of_memory(self, rows: Tensor) -> Tensor:
        """Each base class's share of the nearness of rows of norm 1, [..., d] -> [..., N]."""
        near = rows @ unit(self.project(self.base_memory)).T  # [..., N]
        return (MEMORY_SHARPNESS * near).softmax(dim=-1) * near

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
        """Each example's exact share of each score: [..., L, C, K], adding up over K to `forward`."""
        shares = self._shares(self.support_side(prepared, mask, row_weights), self.query_side(query))
        return self.scale * shares.movedim(-1, -3)

    def _shares(self, support: PlusRows, queries: Tensor) -> Tensor:
        """w_i·((m_i·q) / |Σ w_i m_i| - nearness), [..., C, K, L]: queries last, so that steps run along memory."""
        near = support.rows.flatten(-3, -2) @ queries  # m_i·q, [..., C·K, L]
        near = near.view(*near.shape[:-2], *support.rows.shape[-3:-1], -1)  # [..., C, K, L]
        logits = torch.addcmul(support.counts, support.sharpness, near) if self.use_query else support.counts
        weights = logits.softmax(dim=-2)  # [..., C, K, L]; L is 1 where the query has no say
        squared = ((support.gram @ weights) * weights).sum(dim=-2, keepdim=True)  # |e_c|², [..., C, 1, L]
        shares = weights * near * torch.rsqrt(squared.clamp_min(COSINE_EPSILON**2))
        return shares if support.nearness is None else shares - weights * support.nearness.unsqueeze(-1)

    def episode_loss(self, episodes: EpisodeTensors) -> tuple[Tensor, Tensor]:
        """Cross-entropy; where the last support row is the class's name, it weighs what is learned for it."""
        row_weights = None
        if episodes.named:
            counts = torch.zeros(episodes.support.shape[:-1], device=self.scale.device)  # [B, C, K + 1], as logarithms
            counts[..., -1] = self.log_name_weight
            row_weights = counts.exp()
        scores = self(episodes.support, episodes.query, base_rows=episodes.base_rows, row_weights=row_weights)
        return self.loss(scores, episodes.labels), scores

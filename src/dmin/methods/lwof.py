"""Dynamic Few-Shot Visual Learning without Forgetting: Gidaris and Komodakis, CVPR 2018.

DMIN's ancestor. The classifier weight of a novel class is the mean of its examples plus what an attention over the base
classes finds for them: a *static* memory, read once. Base and novel classes stand in one cosine classifier. In training
the episode's classes play novel: their own rows leave the base set, and the loss runs over the remaining base classes and
the fake-novel ones together. The encoder stays as stage 1 left it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from dmin.errors import ConfigError
from dmin.methods.base import EpisodeTensors, FewShotMethod, Traits, check_memory, masked_mean, unit
from dmin.methods.registry import register
from dmin.methods.search_space import COMMON, SearchSpace, option, rates, scalar_rates
from dmin.routing import identity_linear


@register
class LwoF(FewShotMethod):
    """Cosine classifier whose novel weights are generated with attention over the base weights.

    Args:
        base_memory: W_base [N, d].
        joint_loss: train over base and fake-novel classes together (the paper); False over the fake-novel ones alone.
        tune_encoder: let the encoder learn in stage 2 too (DMIN does; LwoF freezes it).
        seed: of the initial keys and map.
    """

    traits = Traits(
        name="lwof", title="LwoF", place=60, needs_memory=True, episodes_from_base=True, freezes_encoder=True,
        gives_cosines=True,
        search=SearchSpace((
            rates(1e-3, 1e-4, 3e-4), scalar_rates(None, 1e-2), option("joint_loss", True, False), *COMMON,
        ), beyond=(rates(3e-5),)),
        searched=(("stage2.learning_rate", 1e-4), ("options.joint_loss", False), ("options.input_map", True)),
    )  # fmt: skip

    def __init__(
        self, base_memory: Tensor, joint_loss: bool = True, tune_encoder: bool = False, *, seed: int = 0
    ) -> None:
        super().__init__()
        count, dim = base_memory.shape
        generator = torch.Generator().manual_seed(seed)
        self.joint_loss = joint_loss
        self.traits = replace(self.traits, freezes_encoder=not tune_encoder)
        self.base_memory = nn.Parameter(base_memory.detach().clone().float())  # [N, d]
        self.keys = nn.Parameter(torch.randn(count, dim, generator=generator) * math.sqrt(2 / dim))  # [N, d]
        self.query_map = identity_linear(dim, generator)  # φ_q
        self.average_weight = nn.Parameter(torch.ones(dim))  # φ_avg, diagonal
        self.attention_weight = nn.Parameter(torch.ones(dim))  # φ_att, diagonal
        self.scale = nn.Parameter(torch.tensor(10.0))  # γ
        self.attention_scale = nn.Parameter(torch.tensor(10.0))  # γ_att

    @classmethod
    def build(cls, dim: int, *, way: int, shot: int, base_memory: Tensor | None, seed: int, **options: Any) -> Self:
        """See `FewShotMethod.build`; the memory needs more rows than an episode has classes."""
        check_memory(cls.name, base_memory, dim)
        if base_memory is not None and len(base_memory) <= way:
            raise ConfigError(
                f"lwof leaves an episode's {way} classes out of its {len(base_memory)} base classes and needs some to "
                f"remain: use at least {way + 1} base classes, or a smaller way"
            )
        return super().build(dim, way=way, shot=shot, base_memory=base_memory, seed=seed, **options)

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Scores γ·cos(q, w) of the novel classes [..., L, C]; in training their own base rows are left out."""
        kept = self.kept_rows(base_rows) if self.training and base_rows is not None else None
        return self.score_sides(unit(self.generate(support, mask, kept)), self.query_side(query))

    def prepare(self, support: Tensor) -> Tensor:
        """The examples as they are."""
        return support

    def support_side(self, prepared: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None) -> Tensor:
        """The generated weights of the classes, of norm 1: [..., C, d]."""
        return unit(self.generate(prepared, mask, row_weights=row_weights))

    def query_side(self, query: Tensor) -> Tensor:
        """The queries, of norm 1."""
        return unit(query)

    def score_sides(self, support: Tensor, queries: Tensor) -> Tensor:
        """γ·cos(q, w) [..., L, C]."""
        return self.scale * torch.einsum("...ld,...cd->...lc", queries, support)

    def start_from_stage1(self, scale: float | None, mean: Tensor) -> None:
        """Start γ at stage 1's scale."""
        del mean
        if scale is not None:
            self.scale.data.fill_(scale)

    @property
    def temperature(self) -> float:
        """γ: the scores are γ times a cosine."""
        return self.scale.item()

    def generate(
        self,
        support: Tensor,
        mask: Tensor | None = None,
        kept: Tensor | None = None,
        row_weights: Tensor | None = None,
    ) -> Tensor:
        """Novel weights [..., C, d]: φ_avg·(mean example) + φ_att·(what attention reads from the base weights)."""
        z = unit(support)  # [..., C, K, d]
        attention = self.attention(z, kept)  # [..., C, K, N]
        read = masked_mean(attention @ unit(self.base_memory), mask, row_weights)  # [..., C, d]
        return self.average_weight * masked_mean(z, mask, row_weights) + self.attention_weight * read

    def attention(self, z: Tensor, kept: Tensor | None = None) -> Tensor:
        """A [..., C, K, N]: softmax over the kept base classes of γ_att·cos(φ_q(z), key)."""
        logits = self.attention_scale * unit(self.query_map(z)) @ unit(self.keys).T
        if kept is not None:
            logits = logits.masked_fill(~kept[..., None, None, :], torch.finfo(logits.dtype).min)
        return logits.softmax(dim=-1)

    def kept_rows(self, base_rows: Tensor) -> Tensor:
        """[..., N]: True for the base rows that are not classes of the episode [..., C]."""
        numbers = torch.arange(len(self.base_memory), device=base_rows.device)
        return ~(base_rows.unsqueeze(-1) == numbers).any(dim=-2)

    def base_scores(self, query: Tensor, kept: Tensor | None = None) -> Tensor:
        """Scores of the base classes [..., L, N]; left-out ones get the lowest number there is."""
        scores = self.scale * unit(query) @ unit(self.base_memory).T
        return scores if kept is None else scores.masked_fill(~kept.unsqueeze(-2), torch.finfo(scores.dtype).min)

    def episode_loss(self, episodes: EpisodeTensors) -> tuple[Tensor, Tensor]:
        """Cross-entropy over the remaining base classes and the fake-novel ones, on queries of both kinds."""
        novel = self(episodes.support, episodes.query, base_rows=episodes.base_rows)  # [B, L, C]
        if not self.joint_loss or episodes.base_query is None or episodes.base_labels is None:
            return self.loss(novel, episodes.labels), novel
        kept = self.kept_rows(episodes.base_rows)  # [B, N]
        weights = self.generate(episodes.support, None, kept)
        both = torch.cat([episodes.base_query, episodes.query], dim=1)  # [B, Lb + L, d]
        novel_columns = self.scale * torch.einsum("bld,bcd->blc", unit(both), unit(weights))
        scores = torch.cat([self.base_scores(both, kept), novel_columns], dim=-1)  # [B, Lb + L, N + C]
        labels = torch.cat([episodes.base_labels, episodes.labels + len(self.base_memory)], dim=1)
        return functional.cross_entropy(scores.flatten(0, 1), labels.flatten()), novel

"""Hybrid Attention-based Prototypical Networks: Gao, Han, Liu and Sun, AAAI 2019.

Two attentions on top of prototypes. Instance level: for each query, the examples near it weigh more. Feature level: each
class weighs the dimensions of the distance, by small convolutions along its K examples, without looking at the query.
Those convolutions run along the support axis, so a model belongs to one K and the *order* of the examples matters; only
the instance attention is indifferent to it. Starting the last convolution's bias at 1 keeps the attention from being
zero everywhere at the start, where it would never get a gradient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dmin.errors import ConfigError
from dmin.methods.base import FewShotMethod, Traits
from dmin.methods.registry import register
from dmin.methods.search_space import COMMON, SearchSpace, option, rates
from dmin.routing import identity_linear

CHANNELS = (32, 64)


@register
class HATT(FewShotMethod):
    """Prototypes with instance and feature attention.

    Args:
        dim: width of the vectors.
        shot: number K of examples per class; 2 does not work (the convolutions leave two rows).
        scale_attention: divide the instance attention's logits by √d (not in the paper, whose sums of d terms saturate).
        squared_norm: typical squared norm of a vector; distances are divided by it (see `prototypical`).
        dropout: before the last convolution.
        seed: of the initial weights.
    """

    traits = Traits(
        name="hatt", title="HATT", place=50, tied_to="shot",
        search=SearchSpace((rates(1e-3, 1e-4, 3e-4), option("scale_attention", False, True), *COMMON), beyond=(
            rates(3e-5), option("dropout", 0.0, 0.2),
        )),
        searched=(
            ("stage2.learning_rate", 1e-4), ("options.input_map", True), ("options.input_unit", True),
            ("options.input_centre", True),
        ),
    )  # fmt: skip
    squared_norm: Tensor

    def __init__(
        self,
        dim: int,
        shot: int,
        scale_attention: bool = False,
        *,
        squared_norm: float = 1.0,
        dropout: float = 0.5,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if shot == 2:
            raise ConfigError("hatt cannot be built for K=2: its convolutions leave two rows; use shot 1, 3, 4, 5, ...")
        generator = torch.Generator().manual_seed(seed)
        self.shot = shot
        self.register_buffer("squared_norm", torch.tensor(float(squared_norm)))
        self.attention_divisor = dim**0.5 if scale_attention else 1.0
        self.instance = identity_linear(dim, generator)  # g, shared by support and query
        pad = (shot // 2, 0)
        self.conv1 = _conv(1, CHANNELS[0], shot, generator, padding=pad)
        self.conv2 = _conv(CHANNELS[0], CHANNELS[1], shot, generator, padding=pad)
        self.dropout = nn.Dropout(dropout)
        self.conv_final = _conv(CHANNELS[1], 1, shot, generator, stride=(shot, 1))
        with torch.no_grad():
            self.conv_final.bias.fill_(1.0)  # type: ignore[union-attr]

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Scores [..., L, C], none above 0: minus the weighted squared distance to the query's own prototype."""
        del base_rows
        if support.shape[-2] != self.shot:
            raise ConfigError(f"this hatt was built for {self.shot} examples per class, not {support.shape[-2]}")
        importance = self.feature_attention(support, mask)  # z [..., C, d]
        weights = self.instance_attention(support, query, mask)  # β [..., L, C, K]
        prototypes = torch.einsum("...lck,...ckd->...lcd", weights, support)  # of the raw examples
        difference = prototypes - query.unsqueeze(-2)
        return -torch.einsum("...cd,...lcd->...lc", importance, difference * difference) / self.squared_norm

    def instance_attention(self, support: Tensor, query: Tensor, mask: Tensor | None = None) -> Tensor:
        """β [..., L, C, K]: softmax over the examples of the summed tanh of products."""
        left, right = self.instance(support).unsqueeze(-4), self.instance(query)[..., None, None, :]
        logits = torch.tanh(left * right).sum(dim=-1) / self.attention_divisor  # [..., L, C, K]
        if mask is not None:
            logits = logits.masked_fill(~mask.unsqueeze(-3), torch.finfo(logits.dtype).min)
        return logits.softmax(dim=-1)

    def feature_attention(self, support: Tensor, mask: Tensor | None = None) -> Tensor:
        """z [..., C, d], none below 0, independent of the queries."""
        rows = support if mask is None else support * mask.unsqueeze(-1)
        x = rows.reshape(-1, 1, self.shot, support.shape[-1])  # [..C, 1, K, d]
        x = functional.relu(self.conv1(x))
        x = functional.relu(self.conv2(x))
        z = functional.relu(self.conv_final(self.dropout(x)))  # [..C, 1, 1, d]
        return z.reshape(*support.shape[:-2], support.shape[-1])


def _conv(inputs: int, outputs: int, height: int, generator: torch.Generator, **options: Any) -> nn.Conv2d:
    conv = nn.Conv2d(inputs, outputs, (height, 1), device="meta", **options).to_empty(device="cpu")
    bound = (inputs * height) ** -0.5  # the framework's own default, drawn from our generator
    with torch.no_grad():
        for weight in conv.parameters():
            weight.copy_((2 * torch.rand(weight.shape, generator=generator) - 1) * bound)
    return conv

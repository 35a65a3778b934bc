"""The neural tensor layer that scores a pair (class vector, query), shared by Relation and Induction Networks."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from dmin.errors import ConfigError
from dmin.methods.base import unit
from dmin.routing import Initialisation

PROJECTED = 256  # the width at which the layer was published: 100 slices of 256 x 256
STEEPNESS = 10.0  # of the sigmoid over the cosine, at an identity start
IDENTITY_NOISE = 0.01  # of the slices at an identity start, as a part of that at a random one


class NeuralTensorLayer(nn.Module):
    """r = sigmoid(w·ReLU(cᵀ M^[1..h] q) + b) for every class vector c and query q, each pair on its own.

    Args:
        dim: width of c and q.
        slices: number h of slices.
        project: map both sides to this width first where they are wider; None never. M holds h·d² numbers: 59 million
            for BERT-base without projection, 6.6 million with it.
        generator: source of the initial weights.
        initialisation: "random" draws the slices around 0. "identity" starts every slice near the identity and both maps
            at the same orthonormal rows, so that the layer begins as a rising function of the cosine of c and q.
        normalise: bring both sides to one length, so that the products start near 1. Raw vectors of a frozen encoder
            saturate the sigmoid (or, after squash, hardly move it), and it learns nothing.
    """

    def __init__(
        self,
        dim: int,
        slices: int,
        project: int | None,
        generator: torch.Generator,
        *,
        normalise: bool = True,
        initialisation: Initialisation = "random",
    ) -> None:
        super().__init__()
        if initialisation not in ("identity", "random"):
            raise ConfigError(f"initialisation {initialisation!r}: use identity or random")
        self.normalise = normalise
        width = dim if project is None else min(dim, project)
        self.projected = width < dim
        self.class_map = _linear(dim, width, generator) if self.projected else nn.Identity()
        self.query_map = _linear(dim, width, generator) if self.projected else nn.Identity()
        self.slices = nn.Parameter(torch.randn(slices, width, width, generator=generator) / width**0.5)  # M [h, d, d]
        bound = (6 / (slices + 1)) ** 0.5  # Glorot
        self.weight = nn.Parameter((2 * torch.rand(slices, generator=generator) - 1) * bound)
        self.bias = nn.Parameter(torch.zeros(()))
        if initialisation == "identity":
            self._start_at_identity(generator)

    @torch.no_grad()
    def _start_at_identity(self, generator: torch.Generator) -> None:
        """r starts at sigmoid(10·cos(c, q) - 5), plus noise that lets the slices grow apart."""
        count, width, _ = self.slices.shape
        length = width**0.25 if self.normalise else 1.0  # of c and q in `forward`
        self.slices.mul_(IDENTITY_NOISE).add_(torch.eye(width) / length**2)
        self.weight.copy_(STEEPNESS / count * (1 + 0.1 * torch.randn(count, generator=generator)))
        self.bias.fill_(-STEEPNESS / 2)
        if isinstance(self.class_map, nn.Linear) and isinstance(self.query_map, nn.Linear):
            rows = torch.linalg.qr(self.class_map.weight.T)[0].T  # orthonormal [width, d]
            self.class_map.weight.copy_(rows)
            self.query_map.weight.copy_(rows)

    @property
    def note(self) -> str:
        """What differs from the published layer."""
        projected = f"projected to {self.slices.shape[-1]}" if self.projected else ""
        return ", ".join(part for part in (projected, "normalised" if self.normalise else "") if part)

    def forward(self, classes: Tensor, query: Tensor) -> Tensor:
        """Classes [..., C, d] and queries [..., L, d] -> relation scores in (0, 1), [..., L, C]."""
        left, right = self.class_map(classes), self.query_map(query)
        if self.normalise:
            length = left.shape[-1] ** 0.25  # then cᵀ M q has variance 1 at the start
            left, right = length * unit(left), length * unit(right)
        through = self._through(left)  # [..., C, h, e]
        v = functional.relu(torch.einsum("...che,...le->...lch", through, right))  # [..., L, C, h]
        return torch.sigmoid(v @ self.weight + self.bias)

    def _through(self, left: Tensor) -> Tensor:
        """cᵀ M^[1..h] for class vectors [..., C, d]: [..., C, h, e].

        One product per slice, because einsum would copy all of M (26 MB) in every pass, forwards and backwards.
        """
        rows = left.flatten(0, -2)  # [n, d]
        through = torch.bmm(rows.expand(len(self.slices), -1, -1), self.slices)  # [h, n, e]
        return through.unflatten(1, left.shape[:-1]).movedim(0, -2)  # type: ignore[no-untyped-call, no-any-return]


def relation_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Mean over pairs of (r - 1[match])². Predicting 1/C everywhere gives (1/C)(1 - 1/C): a plateau to watch for."""
    target = functional.one_hot(labels, scores.shape[-1]).to(scores.dtype)
    return functional.mse_loss(scores, target)


def _linear(wide: int, narrow: int, generator: torch.Generator) -> nn.Linear:
    linear = nn.Linear(wide, narrow, device="meta").to_empty(device="cpu")
    with torch.no_grad():
        linear.weight.copy_(torch.randn(narrow, wide, generator=generator) / wide**0.5)
        linear.bias.zero_()
    return linear

"""Dynamic Memory Routing: Algorithm 1 of Geng et al., "Dynamic Memory Induction Networks" (ACL 2020).

A memory of n rows is folded into l capsules in the light of a query. The query never enters the output: it sets the
coefficients, and the output is, capsule by capsule, a linear combination of the transformed memory rows. Two things
are unusual. The weight of a row is its coupling *plus* the (tanh of the) Pearson correlation with the query, so it may
be negative and push a row away. And the query itself moves half-way towards the result each round.

`DynamicMemoryRouting.route` is Algorithm 1; its comments give the line and the equation, and "A2" and the like where the
paper can be read in two ways (docs/explanation/reading-of-the-paper.md). For few rows `dmin.routing.gram` computes the same
scores from products of the rows, and that is what QIM runs: whoever changes `route` must change both (a test compares).

Letters in shapes: n memory rows, b queries of one memory, d width, l capsules, v = d / l width of a capsule; `...` any
leading axes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

SoftmaxAxis = Literal["capsules", "memory"]
Initialisation = Literal["identity", "random"]

SQUASH_EPSILON = 1e-9
# A centred sum of squares below this, or below ROUNDING^2 of the vector's own, is rounding noise: no variance.
VARIANCE_FLOOR = 1e-24
ROUNDING = 16.0


def squash(x: Tensor) -> Tensor:
    """Shrink the norm n of the last axis to n²/(1+n²) < 1 and keep the direction (Sabour et al., 2017)."""
    squared = (x * x).sum(dim=-1, keepdim=True)
    return squared / (1 + squared) * x / torch.sqrt(squared + SQUASH_EPSILON)


def pearson(x: Tensor, y: Tensor) -> Tensor:
    """Pearson correlation over the last axis (Eq. 5), in [-1, 1]; 0 where either side has no variance."""
    return (standardise(x) * standardise(y)).sum(dim=-1)


def standardise(x: Tensor) -> Tensor:
    """Centre the last axis and scale it to norm 1, so that a dot product is a correlation; no variance gives 0."""
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = (centred * centred).sum(dim=-1, keepdim=True)
    noise = (ROUNDING * torch.finfo(x.dtype).eps) ** 2 * (x * x).sum(dim=-1, keepdim=True)
    flat = variance <= noise.clamp_min(VARIANCE_FLOOR)
    # The inner where keeps the gradient finite on the branch that the outer one discards.
    scale = torch.rsqrt(torch.where(flat, torch.ones_like(variance), variance))
    return torch.where(flat, torch.zeros_like(centred), centred * scale)


class Routed(NamedTuple):
    """The output of a routing, and the final weight of each memory row in each capsule."""

    output: Tensor  # [..., d]
    weights: Tensor  # [..., n, l]: d_ij + p_ij of the last round, 0 on masked rows


class DynamicMemoryRouting(nn.Module):
    """q' = DMR(M, q), Eq. 1 and Algorithm 1.

    Args:
        dim: width d of memory rows and query; a multiple of `capsules`.
        capsules: number l of output capsules. Each is d / l wide, and that must be at least 3: a correlation over two
            numbers is always -1 or 1.
        iterations: number r of routing rounds, at least 1.
        softmax_over: the axis of d_i = softmax(α_i). "capsules" is the paper's index to the letter (row i spreads
            over the capsules j); "memory" lets the rows compete for each capsule.
        initialisation: of `transform`. "identity" plus noise, because the output is later compared with vectors that were
            not transformed; "random" is Glorot's uniform distribution.
        generator: source of the initial weights; without one, a generator seeded with 0.

    `transform` is one linear map: rows j·v:(j+1)·v of its weight are W_j, likewise the bias.

    Example:
        >>> routing = DynamicMemoryRouting(dim=8, capsules=2)
        >>> routing(torch.randn(5, 8), torch.randn(8)).shape
        torch.Size([8])
    """

    def __init__(
        self,
        dim: int,
        capsules: int = 4,
        iterations: int = 3,
        softmax_over: SoftmaxAxis = "capsules",
        *,
        initialisation: Initialisation = "identity",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if capsules < 1 or dim % capsules:
            raise ValueError(f"dim={dim} does not divide into capsules={capsules} equal parts")
        if dim // capsules < 3:
            raise ValueError(
                f"dim={dim} with capsules={capsules} leaves {dim // capsules} numbers per capsule; 3 needed"
            )
        if iterations < 1:
            raise ValueError(f"iterations={iterations}: at least 1 is needed")
        if softmax_over not in ("capsules", "memory"):
            raise ValueError(f"softmax_over={softmax_over!r}: 'capsules' or 'memory'")
        self.dim = dim
        self.capsules = capsules
        self.iterations = iterations
        self.softmax_over = softmax_over
        self.width = dim // capsules  # v, of a capsule
        if initialisation not in ("identity", "random"):
            raise ValueError(f"initialisation={initialisation!r}: 'identity' or 'random'")
        self.transform = (identity_linear if initialisation == "identity" else random_linear)(dim, generator)

    def forward(
        self, memory: Tensor, query: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> Tensor:
        """Return q' [..., d] for memory [..., n, d], query [..., d] and mask [..., n] (True = a real row).

        Leading axes broadcast. A query whose rows are all masked gets zeros. `row_weights` [..., n] multiply the rows'
        parts in the sum; the paper has none, which is 1.
        """
        return self.route(memory, query, mask, row_weights).output

    def route(
        self, memory: Tensor, query: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> Routed:
        """Like `forward`, with the final weights d_ij + p_ij (times the row's own) of each row in each capsule."""
        self._check(memory, query, mask)
        # Queries of one memory are the b rows of a matrix; where each has a memory of its own, b = 1.
        shared = query.ndim > 1 and all(x is None or x.ndim == 1 for x in (memory[..., 0], mask, row_weights))
        asked = query.flatten(0, -2) if shared else query.unsqueeze(-2)  # [..., b, d]
        kept = None if mask is None else mask[..., None, None, :]  # [..., 1, 1, n]
        m_hat = self._capsules_first(memory)  # [..., l, n, v]                     line 2, Eq. 2
        if mask is not None:
            m_hat = m_hat * mask[..., None, :, None]  # squash(b) is not 0: a masked row must be made 0 here
        q_hat = self._capsules_first(asked)  # [..., l, b, v]                      line 3, Eq. 3
        m_standard = standardise(m_hat)  # [..., l, n, v]: the same in every round
        p = _correlation(m_standard, q_hat)  # [..., l, b, n]                      line 5, Eq. 4, A10
        alpha = torch.zeros_like(p)  # [..., l, b, n]                              line 4
        for round_number in range(1, self.iterations + 1):
            weights = self._couplings(alpha, kept) + p  # [..., l, b, n]           line 8, Eq. 6, A2; d + p of line 9
            if row_weights is not None:
                weights = weights * row_weights[..., None, None, :]
            v = squash(torch.einsum("...bn,...nv->...bv", weights, m_hat))  #      lines 9, 10, Eq. 8, 9, A6
            if round_number == self.iterations:
                break  # the updates below would reach nothing
            # The old p weighs the agreement; p is refreshed last.
            alpha = alpha + p * torch.einsum("...nv,...bv->...bn", m_hat, v)  #    line 11, Eq. 7, A5
            q_hat = (q_hat + v) / 2  # [..., l, b, v]                              line 12, A7
            p = _correlation(m_standard, q_hat)  # [..., l, b, n]                  line 13, Eq. 4
        output = v.transpose(-3, -2).flatten(-2)  # [..., b, d]                    line 15
        weights = weights.movedim(-3, -1)  # [..., b, n, l]
        if shared:
            return Routed(
                output.unflatten(0, query.shape[:-1]),  # type: ignore[no-untyped-call]
                weights.unflatten(0, query.shape[:-1]),  # type: ignore[no-untyped-call]
            )
        return Routed(output.squeeze(-2), weights.squeeze(-3))

    def capsule_vectors(self, x: Tensor) -> Tensor:
        """squash(W_j x + b_j) for every capsule j: [..., d] -> [..., l, v] (Eq. 2 and 3)."""
        return squash(self.transform(x).unflatten(-1, (self.capsules, -1)))

    def _capsules_first(self, x: Tensor) -> Tensor:
        """`capsule_vectors` of rows [..., n, d] as one matrix per capsule, [..., l, n, v]: products are fast so."""
        return self.capsule_vectors(x).transpose(-3, -2).contiguous()

    def _couplings(self, alpha: Tensor, kept: Tensor | None) -> Tensor:
        """d_i = softmax(α_i) over the chosen axis of [..., l, b, n], 0 on masked rows."""
        if self.softmax_over == "memory" and kept is not None:
            alpha = alpha.masked_fill(~kept, torch.finfo(alpha.dtype).min)
        couplings = alpha.softmax(dim=-3 if self.softmax_over == "capsules" else -1)
        return couplings if kept is None else couplings * kept

    def _check(self, memory: Tensor, query: Tensor, mask: Tensor | None) -> None:
        if memory.ndim < 2 or memory.shape[-1] != self.dim:
            raise ValueError(f"memory has shape {list(memory.shape)}; [..., n, {self.dim}] is needed")
        if query.shape[-1:] != (self.dim,):
            raise ValueError(f"query has shape {list(query.shape)}; [..., {self.dim}] is needed")
        if mask is not None and (mask.dtype != torch.bool or mask.shape[-1:] != memory.shape[-2:-1]):
            raise ValueError(
                f"mask has shape {list(mask.shape)} and type {mask.dtype}; "
                f"[..., {memory.shape[-2]}] of torch.bool is needed (True = a real row)"
            )


def _correlation(m_standard: Tensor, q_hat: Tensor) -> Tensor:
    """p_ij = tanh(PCC(m̂_ij, q̂_j)), Eq. 4: [..., l, n, v] and [..., l, b, v] -> [..., l, b, n].

    0 on masked rows, whose m̂ is 0 and has no variance.
    """
    return torch.tanh(torch.einsum("...nv,...bv->...bn", m_standard, standardise(q_hat)))


def identity_linear(dim: int, generator: torch.Generator | None = None, noise: float = 1e-3) -> nn.Linear:
    """A linear map that starts at the identity plus a little noise, bias 0, and leaves global random state alone."""
    generator = generator or torch.Generator().manual_seed(0)
    # Made on the meta device, where no number is drawn, then given memory.
    linear = nn.Linear(dim, dim, device="meta").to_empty(device="cpu")
    with torch.no_grad():
        linear.weight.copy_(torch.eye(dim) + noise * torch.randn(dim, dim, generator=generator))
        linear.bias.zero_()
    return linear


def random_linear(dim: int, generator: torch.Generator | None = None) -> nn.Linear:
    """A linear map that starts at Glorot's uniform weights, bias 0, and leaves global random state alone."""
    generator = generator or torch.Generator().manual_seed(0)
    linear = nn.Linear(dim, dim, device="meta").to_empty(device="cpu")
    bound = (3 / dim) ** 0.5
    with torch.no_grad():
        linear.weight.copy_((2 * torch.rand(dim, dim, generator=generator) - 1) * bound)
        linear.bias.zero_()
    return linear

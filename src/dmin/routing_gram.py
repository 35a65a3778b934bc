"""Dynamic memory routing in Gram space: the same cosines as `dmin.routing`, without ever making the class vectors.

Every quantity inside the rounds is an inner product of the fixed vectors m̂_1..m̂_K and q̂⁰ of one capsule: v is s·Σ w_i m̂_i,
and q̂ is a·q̂⁰ + Σ β_i m̂_i. So the coefficients w, β and a are kept in place of the vectors; all that is needed are the
Gram matrices of the rows, plain and centred, and two products of rows and queries. The rounds cost O(L·C·l·K²), whatever
the width: it pays while K is small against the width of a capsule.

Letters in shapes: C classes, K rows a class, L queries, l capsules, v width of a capsule; `...` any leading axes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dmin.routing import ROUNDING, SQUASH_EPSILON, VARIANCE_FLOOR, DynamicMemoryRouting


class GramRows(NamedTuple):
    """The support side of a routing, which does not depend on the query."""

    rows: Tensor  # m̂ [..., C, K, l, v], 0 where masked
    centred: Tensor  # m̂ minus its mean over v
    means: Tensor  # [..., C, l, 1, K]
    gram: Tensor  # m̂·m̂ [..., C, l, K, K]
    centred_gram: Tensor  # [..., C, l, K, K]
    inverse: Tensor  # 1 / σ of each row, 0 where it has no variance: [..., C, l, 1, K]
    kept: Tensor | None  # mask [..., C, 1, 1, K]


def gram_rows(routing: DynamicMemoryRouting, memory: Tensor, mask: Tensor | None = None) -> GramRows:
    """Memory rows [..., C, K, d] with mask [..., C, K] (True = a real row), as the rounds need them."""
    rows = routing.capsule_vectors(memory)  # [..., C, K, l, v]
    if mask is not None:
        rows = rows * mask[..., None, None]  # squash(b) is not 0: a masked row must be made 0 here
    means = rows.mean(dim=-1)  # [..., C, K, l]
    centred = rows - means.unsqueeze(-1)
    gram = torch.einsum("...iav,...jav->...aij", rows, rows)  # [..., C, l, K, K]
    centred_gram = torch.einsum("...iav,...jav->...aij", centred, centred)
    variance, squared = (torch.diagonal(g, dim1=-2, dim2=-1).unsqueeze(-2) for g in (centred_gram, gram))
    kept = None if mask is None else mask[..., None, None, :]
    return GramRows(
        rows, centred, means.movedim(-1, -2).unsqueeze(-2), gram, centred_gram, _inverse(variance, squared), kept
    )


def gram_cosine(
    routing: DynamicMemoryRouting, support: GramRows, query: Tensor, row_weights: Tensor | None = None
) -> Tensor:
    """cos(e_q, DMR(rows of a class, e_q)) for queries [..., L, d] and every class: [..., L, C].

    `row_weights` [..., C, K] multiply the rows' parts in the sum, as in `DynamicMemoryRouting.route`.
    """
    q_hat = routing.capsule_vectors(query)  # [..., L, l, v]
    own = query.reshape(*query.shape[:-1], routing.capsules, -1)  # e_q's own blocks, not transformed
    with_query = torch.einsum("...ckav,...qav->...caqk", support.centred, q_hat)  # A [..., C, l, L, K]
    with_own = torch.einsum("...ckav,...qav->...caqk", support.rows, own)  # B
    q_mean = q_hat.mean(dim=-1)  # [..., L, l]
    q_variance = (q_hat - q_mean.unsqueeze(-1)).square().sum(dim=-1)
    q_mean, q_variance = (x.movedim(-1, -2)[..., None, :, :, None] for x in (q_mean, q_variance))  # [..., 1, l, L, 1]
    counts = None if row_weights is None else row_weights[..., None, None, :]  # [..., C, 1, 1, K]
    width = q_hat.shape[-1]

    share, mixed = 1.0, torch.zeros_like(with_query)  # a, β
    alpha = torch.zeros_like(with_query)
    p = _correlation(support, with_query, q_mean, q_variance, share, mixed, width)
    for round_number in range(1, routing.iterations + 1):
        weights = _couplings(routing, alpha, support.kept) + p  # [..., C, l, L, K]    Eq. 6
        if counts is not None:
            weights = weights * counts
        along = weights @ support.gram  # (Gw)_i
        squared = (along * weights).sum(dim=-1, keepdim=True).clamp_min(0)  # n² = wᵀGw, [..., C, l, L, 1]
        shrink = squared / (1 + squared) / torch.sqrt(squared + SQUASH_EPSILON)  # v = shrink·Σ w_i m̂_i    Eq. 8, 9
        if round_number == routing.iterations:
            break
        alpha = alpha + p * shrink * along  # Eq. 7
        share, mixed = share / 2, (mixed + shrink * weights) / 2
        p = _correlation(support, with_query, q_mean, q_variance, share, mixed, width)
    dot = (shrink * (weights * with_own).sum(dim=-1, keepdim=True)).sum(dim=-3).squeeze(-1)  # e_q·e_c [..., C, L]
    length = torch.sqrt((shrink * shrink * squared).sum(dim=-3).squeeze(-1).clamp_min(1e-16))  # |e_c|
    asked = torch.sqrt((query * query).sum(dim=-1).clamp_min(1e-16)).unsqueeze(-2)  # |e_q| [..., 1, L]
    return (dot / (length * asked)).movedim(-1, -2)


def _correlation(
    support: GramRows, with_query: Tensor, q_mean: Tensor, q_variance: Tensor, share: float, mixed: Tensor, width: int
) -> Tensor:
    """p = tanh(PCC(m̂_i, q̂)) with q̂ = a·q̂⁰ + Σ β_i m̂_i, Eq. 4: [..., C, l, L, K]."""
    along = mixed @ support.centred_gram  # G_c β
    dots = share * with_query + along  # centred m̂_i · q̂
    variance = share * share * q_variance + (mixed * (2 * share * with_query + along)).sum(dim=-1, keepdim=True)
    mean = share * q_mean + (mixed * support.means).sum(dim=-1, keepdim=True)
    variance = variance.clamp_min(0)
    return torch.tanh(dots * support.inverse * _inverse(variance, variance + width * mean * mean))


def _inverse(variance: Tensor, squared: Tensor) -> Tensor:
    """1 / sqrt(variance); 0 where the variance is rounding noise, as `dmin.routing.standardise` has it."""
    noise = (ROUNDING * torch.finfo(variance.dtype).eps) ** 2 * squared
    flat = variance <= noise.clamp_min(VARIANCE_FLOOR)
    found = torch.rsqrt(torch.where(flat, torch.ones_like(variance), variance))
    return torch.where(flat, torch.zeros_like(found), found)


def _couplings(routing: DynamicMemoryRouting, alpha: Tensor, kept: Tensor | None) -> Tensor:
    """d_i = softmax(α_i) over the chosen axis, 0 on masked rows: [..., C, l, L, K]."""
    if routing.softmax_over == "memory" and kept is not None:
        alpha = alpha.masked_fill(~kept, torch.finfo(alpha.dtype).min)
    couplings = alpha.softmax(dim=-3 if routing.softmax_over == "capsules" else -1)
    return couplings if kept is None else couplings * kept

"""Dynamic memory routing in Gram space: the same cosines as `dmin.routing`, without ever making the class vectors.

Every quantity inside the rounds is an inner product of the fixed vectors m̂_1..m̂_K and q̂⁰ of one capsule: v is s·Σ w_i m̂_i,
and q̂ is a·q̂⁰ + Σ β_i m̂_i. So the coefficients w, β and a are kept in place of the vectors; all that is needed are the
Gram matrices of the rows, plain and standardised, and two products of rows and queries. The rounds cost O(L·C·l·K²),
whatever the width: it pays while K is small against the width of a capsule.

Instead of β the rounds keep β_i·σ_i, with σ_i the deviation of m̂_i: then every product is one of standardised rows and
the correlation comes out without a division by σ_i. The support side (`gram_rows`) and the query side (`gram_queries`) are
each made once; the queries lie last in every tensor, so that all steps of the rounds run along contiguous memory.

Letters in shapes: C classes, K rows per class, L queries, l capsules, v width of a capsule; `...` any leading axes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dmin.routing.algorithm import ROUNDING, SQUASH_EPSILON, VARIANCE_FLOOR, DynamicMemoryRouting


class GramRows(NamedTuple):
    """The support side of a routing, which does not depend on the query."""

    rows: Tensor  # m̂ [..., l, C, K, v], 0 where masked
    standard: Tensor  # m̂ centred and scaled to norm 1, 0 where it has no variance
    gram: Tensor  # m̂·m̂ [..., l, C, K, K]
    correlations: Tensor  # of the standardised rows [..., l, C, K, K]
    deviation: Tensor  # σ, the norm of a centred row [..., l, C, K, 1]
    kept: Tensor | None  # mask [..., 1, C, K, 1]
    counts: Tensor | None  # what each row weighs in the sum [..., 1, C, K, 1]


class GramQueries(NamedTuple):
    """The query side, which does not depend on the classes."""

    vectors: Tensor  # q̂⁰ [..., l, v, L], 0 where it has no variance
    variance: Tensor  # of q̂⁰ [..., l, 1, 1, L]
    own: Tensor  # e_q's own blocks, not transformed [..., l, v, L]
    norm: Tensor  # |e_q| [..., L, 1]


def gram_rows(
    routing: DynamicMemoryRouting, memory: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
) -> GramRows:
    """Memory rows [..., C, K, d] with mask [..., C, K] (True = a real row), as the rounds need them.

    `row_weights` [..., C, K] multiply the rows' parts in the sum, as in `DynamicMemoryRouting.route`.
    """
    rows = routing.capsule_vectors(memory)  # [..., C, K, l, v]
    if mask is not None:
        rows = rows * mask[..., None, None]  # squash(b) is not 0: a masked row must be made 0 here
    rows = rows.movedim(-2, -4).contiguous()  # [..., l, C, K, v]
    centred = rows - rows.mean(dim=-1, keepdim=True)
    gram = rows @ rows.transpose(-1, -2)
    variance = centred.square().sum(dim=-1, keepdim=True)  # [..., l, C, K, 1]
    inverse = _inverse(variance, rows.square().sum(dim=-1, keepdim=True))
    standard = centred * inverse
    kept, counts = (None if x is None else x[..., None, :, :, None] for x in (mask, row_weights))
    return GramRows(
        rows, standard, gram, standard @ standard.transpose(-1, -2), variance * inverse, kept, counts
    )  # fmt: skip


def gram_queries(routing: DynamicMemoryRouting, query: Tensor) -> GramQueries:
    """Queries [..., L, d] as the rounds need them."""
    vectors = routing.capsule_vectors(query)  # [..., L, l, v]
    centred = vectors - vectors.mean(dim=-1, keepdim=True)
    variance = centred.square().sum(dim=-1, keepdim=True)  # [..., L, l, 1]
    varied = _inverse(variance, vectors.square().sum(dim=-1, keepdim=True)) > 0
    vectors = (vectors * varied).movedim(-3, -1)  # [..., l, v, L]
    variance = (variance * varied).movedim(-3, -1).unsqueeze(-2)  # [..., l, 1, 1, L]
    own = query.view(*query.shape[:-1], routing.capsules, -1).movedim(-3, -1)
    norm = torch.sqrt((query * query).sum(dim=-1, keepdim=True).clamp_min(1e-16))
    return GramQueries(vectors, variance, own, norm)


def gram_cosine(routing: DynamicMemoryRouting, support: GramRows, queries: GramQueries) -> Tensor:
    """cos(e_q, DMR(rows of a class, e_q)) for every query and class: [..., L, C]."""
    with_query = _products(support.standard, queries.vectors)  # centred m̂_i·q̂⁰ / σ_i, [..., l, C, K, L]
    with_own = _products(support.rows, queries.own)  # m̂_i·e_q
    p = torch.tanh(with_query * _inverse(queries.variance, queries.variance))  # Eq. 4
    alpha, share, mixed = None, 1.0, None  # α, a, βσ: 0 before the first round
    for round_number in range(1, routing.iterations + 1):
        weights = _couplings(routing, alpha, support) + p  # [..., l, C, K, L]    Eq. 6
        if support.counts is not None:
            weights = weights * support.counts
        along = support.gram @ weights  # (Gw)_i
        squared = (along * weights).sum(dim=-2, keepdim=True).clamp_min(0)  # n² = wᵀGw, [..., l, C, 1, L]
        shrink = squared / ((1 + squared) * torch.sqrt(squared + SQUASH_EPSILON))  # v = shrink·Σ w_i m̂_i    Eq. 8, 9
        if round_number == routing.iterations:
            break
        agreement = p * shrink
        alpha = agreement * along if alpha is None else torch.addcmul(alpha, agreement, along)  # Eq. 7
        added = weights * (shrink * (support.deviation / 2))
        share, mixed = share / 2, added if mixed is None else torch.add(added, mixed, alpha=0.5)
        dots = torch.add(support.correlations @ mixed, with_query, alpha=share)  # centred m̂_i·q̂ / σ_i
        variance = (mixed * torch.add(dots, with_query, alpha=share)).sum(dim=-2, keepdim=True)
        variance = (variance + share * share * queries.variance).clamp_min(0)  # of q̂, [..., l, C, 1, L]
        p = torch.tanh(dots * _inverse(variance, variance))  # Eq. 4
    shrink, squared = shrink.squeeze(-2), squared.squeeze(-2)  # [..., l, C, L]
    dot = (shrink * (weights * with_own).sum(dim=-2)).sum(dim=-3)  # e_q·e_c [..., C, L]
    length = torch.sqrt((shrink * shrink * squared).sum(dim=-3).clamp_min(1e-16))  # |e_c|
    return (dot / length).transpose(-1, -2) / queries.norm


def _products(rows: Tensor, vectors: Tensor) -> Tensor:
    """Dot products of rows [..., l, C, K, v] with queries [..., l, v, L]: one matrix product per capsule."""
    found = rows.flatten(-3, -2) @ vectors  # [..., l, C·K, L]
    return found.view(*found.shape[:-2], *rows.shape[-3:-1], -1)


def _inverse(variance: Tensor, squared: Tensor) -> Tensor:
    """1 / sqrt(variance); 0 where the variance is rounding noise, as `dmin.routing.algorithm.standardise` has it."""
    noise = (ROUNDING * torch.finfo(variance.dtype).eps) ** 2 * squared
    flat = variance <= noise.clamp_min(VARIANCE_FLOOR)
    found = torch.rsqrt(torch.where(flat, torch.ones_like(variance), variance))
    return torch.where(flat, torch.zeros_like(found), found)


def _couplings(routing: DynamicMemoryRouting, alpha: Tensor | None, support: GramRows) -> Tensor:
    """d_i = softmax(α_i) over the chosen axis, 0 on masked rows: [..., l, C, K, L], or of a shape that broadcasts to it."""
    kept = support.kept
    if alpha is None:
        alpha = torch.zeros_like(support.deviation)  # [..., l, C, K, 1]
    if routing.softmax_over == "memory" and kept is not None:
        alpha = alpha.masked_fill(~kept, torch.finfo(alpha.dtype).min)
    couplings = alpha.softmax(dim=-4 if routing.softmax_over == "capsules" else -2)
    return couplings if kept is None else couplings * kept

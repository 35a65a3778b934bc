"""Cosines, unit vectors and masked means, with finite gradients at zero."""

from __future__ import annotations

import torch
from torch import Tensor

COSINE_EPSILON = 1e-8


def cosine(x: Tensor, y: Tensor) -> Tensor:
    """Cosine over the last axis; leading axes broadcast; 0 for a zero vector, with a finite gradient."""
    return torch.einsum("...d,...d->...", unit(x), unit(y))


def unit(x: Tensor) -> Tensor:
    """Scale the last axis to norm 1; a zero vector stays zero, with a finite gradient."""
    squared = (x * x).sum(dim=-1, keepdim=True)
    return x * torch.rsqrt(squared.clamp_min(COSINE_EPSILON**2))


def masked_mean(support: Tensor, mask: Tensor | None, row_weights: Tensor | None = None) -> Tensor:
    """Mean over the real rows: [..., K, d] with mask and weights [..., K] -> [..., d]."""
    if row_weights is not None:
        weights = (row_weights if mask is None else row_weights * mask).unsqueeze(-1).to(support.dtype)
        return (support * weights).sum(dim=-2) / weights.sum(dim=-2).clamp_min(COSINE_EPSILON)
    if mask is None:
        return support.mean(dim=-2)
    weights = mask.unsqueeze(-1).to(support.dtype)
    return (support * weights).sum(dim=-2) / weights.sum(dim=-2).clamp_min(1)

"""HATT."""

from __future__ import annotations

import pytest
import torch

from dmin.errors import ConfigError
from dmin.methods import HATT
from tests.methods.common import random

QUERY = random(6, 24, seed=1)


def method(shot: int, seed: int = 0) -> HATT:
    return HATT(24, shot, seed=seed).double().eval()


def with_flat_features(hatt: HATT) -> HATT:
    """z = 1 everywhere."""
    with torch.no_grad():
        hatt.conv_final.weight.zero_()
        hatt.conv_final.bias.fill_(1.0)  # type: ignore[union-attr]
    return hatt


def squared_distance(query: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    return ((query.unsqueeze(1) - classes) ** 2).sum(dim=-1)


def test_one_shot_reductions() -> None:
    hatt = method(1)
    support = random(4, 1, 24)
    assert (hatt.instance_attention(support, QUERY) == 1).all()
    z = hatt.feature_attention(support)
    expected = -(z * (QUERY.unsqueeze(1) - support[:, 0]) ** 2).sum(dim=-1)
    assert torch.allclose(hatt(support, QUERY), expected, atol=1e-12)
    # 1x1 convolutions: z_d is one function of s_d alone
    permuted = torch.randperm(24, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(hatt.feature_attention(support[..., permuted]), z[..., permuted], atol=1e-12)
    flat = with_flat_features(method(1))
    assert torch.allclose(flat(support, QUERY), -squared_distance(QUERY, support[:, 0]), atol=1e-12)


def test_equal_examples_make_a_prototypical_network() -> None:
    support = random(4, 1, 24).expand(4, 5, 24)
    flat = with_flat_features(method(5))
    attention = flat.instance_attention(support, QUERY)
    assert torch.allclose(attention, torch.full_like(attention, 0.2))
    assert torch.allclose(flat(support, QUERY), -squared_distance(QUERY, support[:, 0]), atol=1e-12)


def test_order_matters_to_the_features_only() -> None:
    hatt, support = method(5), random(4, 5, 24)
    order = torch.tensor([4, 2, 0, 1, 3])
    attention = hatt.instance_attention(support, QUERY)
    assert torch.allclose(hatt.instance_attention(support[:, order], QUERY), attention[..., order], atol=1e-12)
    assert torch.allclose(attention.sum(dim=-1), torch.ones(6, 4, dtype=torch.float64))
    assert not torch.allclose(hatt(support[:, order], QUERY), hatt(support, QUERY))


@pytest.mark.parametrize("shot", [1, 3, 4, 5, 10])
def test_never_starts_dead(shot: int) -> None:
    """Framework defaults start with z = 0 everywhere, and so without any gradient, in 10 to 39 % of seeds."""
    support = 0.3 * random(5, shot, 24)
    for seed in range(40):
        hatt = method(shot, seed)
        z = hatt.feature_attention(support)
        assert (z >= 0).all() and (z > 0).any()
        assert (hatt(support, QUERY) <= 0).all()
    hatt.train()
    hatt.loss(hatt(support, QUERY), torch.arange(6) % 5).backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in hatt.conv1.parameters())


def test_features_do_not_know_the_queries_and_masked_rows() -> None:
    hatt, support = method(5), random(4, 5, 24)
    mask = torch.ones(4, 5, dtype=torch.bool)
    mask[0, 3:] = False
    weights = hatt.instance_attention(support, QUERY, mask)
    assert (weights[:, 0, 3:] == 0).all()
    assert torch.allclose(weights.sum(dim=-1), torch.ones(6, 4, dtype=torch.float64))


def test_what_it_cannot_do_is_said() -> None:
    with pytest.raises(ConfigError, match="K=2"):
        HATT(24, 2)
    with pytest.raises(ConfigError, match="built for 5 examples per class, not 3"):
        method(5)(random(4, 3, 24), QUERY)

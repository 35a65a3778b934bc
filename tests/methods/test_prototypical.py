"""Prototypical Networks."""

from __future__ import annotations

import torch

from dmin.methods import Prototypical
from tests.methods.common import random

SUPPORT, QUERY = random(4, 3, 24), random(6, 24, seed=1)
PLAIN = Prototypical(24, project=False).double()


def test_is_a_linear_classifier() -> None:
    means = SUPPORT.mean(dim=1)
    linear = 2 * QUERY @ means.T - (means**2).sum(dim=-1)
    shifted = PLAIN(SUPPORT, QUERY) / PLAIN.scale + (QUERY**2).sum(dim=-1, keepdim=True)
    assert torch.allclose(shifted, linear, atol=1e-9)


def test_translation_and_rotation_change_nothing() -> None:
    shift = random(24, seed=2)
    rotation, _ = torch.linalg.qr(random(24, 24, seed=3))
    scores = PLAIN(SUPPORT, QUERY)
    assert torch.allclose(PLAIN(SUPPORT + shift, QUERY + shift), scores, atol=1e-8)
    assert torch.allclose(PLAIN(SUPPORT @ rotation, QUERY @ rotation), scores, atol=1e-8)


def test_copies_of_the_support_change_nothing() -> None:
    doubled = SUPPORT.repeat_interleave(2, dim=1)
    assert torch.allclose(PLAIN(doubled, QUERY), PLAIN(SUPPORT, QUERY), atol=1e-9)


def test_distances_are_scaled_by_the_typical_norm() -> None:
    memory = 7 * torch.nn.functional.normalize(random(10, 24).float(), dim=-1)
    method = Prototypical.build(24, way=5, shot=1, base_memory=memory, seed=0, project=False)
    assert abs(float(method.squared_norm) - 49) < 1e-3
    assert "squared_norm" in method.state_dict()  # kept with the weights: a loaded head must score alike

"""Each trained method learns: from near chance (25 %) to above 90 % where only a few directions carry the classes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dmin.methods import create
from tests.methods.common import World, train

pytestmark = pytest.mark.slow

BUDGET: dict[str, dict[str, Any]] = {
    "relation": {"steps": 900, "rate": 6e-3, "pool": "mean", "slices": 20},
    "induction": {"steps": 600, "rate": 3e-3},
    "hatt": {"steps": 900, "rate": 1e-2},
    "lwof": {"steps": 300, "rate": 1e-2},
    "dmin": {"steps": 300, "rate": 3e-3, "capsules": 2, "softmax_over": "memory"},
    "prototypical": {"steps": 200, "rate": 1e-2},
    "matching": {"steps": 300, "rate": 1e-2},
    "dmin-plus": {"steps": 300, "rate": 1e-2},
}


@pytest.mark.parametrize("name", list(BUDGET))
def test_learns(name: str) -> None:
    world = World(shot=3)
    options = dict(BUDGET[name])
    steps, rate = options.pop("steps"), options.pop("rate")
    memory = torch.randn(world.classes, world.dim, generator=torch.Generator().manual_seed(5)) * 2
    method = create(name, world.dim, way=world.way, shot=world.shot, base_memory=memory, **options)
    start = world.accuracy(method)
    train(method, lambda: world.episodes(8), steps, rate)
    end = world.accuracy(method)
    assert start < 0.5, start
    assert end > 0.9, end

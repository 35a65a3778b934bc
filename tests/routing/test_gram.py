"""The routing in Gram space against the plain one."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dmin.methods.base import cosine
from dmin.routing import DynamicMemoryRouting, SoftmaxAxis
from dmin.routing.gram import gram_cosine, gram_queries, gram_rows


def random(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def routing(capsules: int, iterations: int, axis: SoftmaxAxis, seed: int, dim: int = 24) -> DynamicMemoryRouting:
    module = DynamicMemoryRouting(dim, capsules, iterations, axis).double()
    module.transform.weight.data += 0.2 * random(dim, dim, seed=seed)
    module.transform.bias.data += 0.1 * random(dim, seed=seed + 1)
    return module


def gram(
    module: DynamicMemoryRouting,
    memory: Tensor,
    query: Tensor,
    mask: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    return gram_cosine(module, gram_rows(module, memory, mask, weights), gram_queries(module, query))


def plain_cosine(
    module: DynamicMemoryRouting, memory: Tensor, query: Tensor, mask: Tensor | None, weights: Tensor | None
) -> Tensor:
    shown = None if mask is None else mask.unsqueeze(-3)
    counts = None if weights is None else weights.unsqueeze(-3)
    vectors = module(memory.unsqueeze(-4), query.unsqueeze(-2), shown, counts)  # [..., L, C, d]
    return cosine(query.unsqueeze(-2), vectors)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    classes=st.integers(1, 5),
    rows=st.integers(1, 6),
    capsules=st.sampled_from([1, 2, 4]),
    iterations=st.integers(1, 4),
    axis=st.sampled_from(["capsules", "memory"]),
    size=st.floats(0.1, 30),
    masked=st.booleans(),
    weighed=st.booleans(),
    single=st.booleans(),
)
def test_equal_to_the_plain_form(
    seed: int,
    classes: int,
    rows: int,
    capsules: int,
    iterations: int,
    axis: SoftmaxAxis,
    size: float,
    masked: bool,
    weighed: bool,
    single: bool,
) -> None:
    module = routing(capsules, iterations, axis, seed)
    memory, query = random(classes, rows, 24, seed=seed + 2), random(4, 24, seed=seed + 3)
    memory, query = (size * x / x.norm(dim=-1, keepdim=True) for x in (memory, query))
    mask = weights = None
    if masked:
        mask = torch.rand(classes, rows, generator=torch.Generator().manual_seed(seed)) < 0.6
        mask[:, 0] = True
    if weighed:
        weights = random(classes, rows, seed=seed + 4).abs() + 0.1
    if single:
        module, memory, query = module.float(), memory.float(), query.float()
        weights = None if weights is None else weights.float()
    found = gram(module, memory, query, mask, weights)
    expected = plain_cosine(module, memory, query, mask, weights)
    # A cosine near 0 is a small difference of large numbers: the scale of comparison is 1.
    assert torch.allclose(found, expected, rtol=1e-5 if single else 1e-9, atol=1e-5 if single else 1e-9)


@pytest.mark.parametrize("axis", ["capsules", "memory"])
def test_gradients_are_the_same(axis: SoftmaxAxis) -> None:
    module = routing(4, 3, axis, 5)
    memory, query = random(3, 4, 24, seed=1).requires_grad_(), random(5, 24, seed=2).requires_grad_()
    mask = torch.tensor([[True] * 4, [True, True, False, False], [True, False, False, False]])
    wanted = [memory, query, module.transform.weight, module.transform.bias]
    goal = random(5, 3, seed=3)
    one = torch.autograd.grad((gram(module, memory, query, mask) * goal).sum(), wanted)
    two = torch.autograd.grad((plain_cosine(module, memory, query, mask, None) * goal).sum(), wanted)
    for first, second in zip(one, two, strict=True):
        assert torch.allclose(first, second, rtol=1e-8, atol=1e-10)


def test_leading_axes_and_rows_without_variance() -> None:
    module = routing(2, 3, "capsules", 7)
    memory, query = random(2, 3, 4, 5, 24, seed=1), random(2, 3, 6, 24, seed=2)
    found = gram(module, memory, query)
    assert found.shape == (2, 3, 6, 4)
    assert torch.allclose(found, plain_cosine(module, memory, query, None, None), atol=1e-9)
    flat = torch.zeros(3, 2, 24, dtype=torch.float64)
    zeros = routing(2, 3, "capsules", 7)
    zeros.transform.bias.data.zero_()
    same = gram(zeros, flat, random(4, 24, seed=2))
    assert torch.isfinite(same).all() and torch.allclose(same, torch.zeros_like(same))

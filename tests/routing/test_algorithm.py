"""The routing against a literal loop, by its gradients, and by the properties the equations promise."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dmin.routing import DynamicMemoryRouting, SoftmaxAxis, pearson, squash
from tests import oracle

AXES: list[SoftmaxAxis] = ["capsules", "memory"]
shapes = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(3, 6))  # rows, capsules, width of a capsule
scales = st.floats(0.1, 30)
seeds = st.integers(0, 10_000)


def random(*shape: int, seed: int, scale: float = 1.0) -> Tensor:
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def routing(dim: int, capsules: int, seed: int = 0, **options: Any) -> DynamicMemoryRouting:
    """In float64 with weights far from the identity."""
    module = DynamicMemoryRouting(dim, capsules, **options).double()
    with torch.no_grad():
        module.transform.weight.copy_(random(dim, dim, seed=seed) / dim**0.5)
        module.transform.bias.copy_(0.1 * random(dim, seed=seed + 1))
    return module


@settings(max_examples=60, deadline=None)
@given(shape=shapes, seed=seeds, scale=scales, iterations=st.integers(1, 4), axis=st.sampled_from(AXES))
def test_equals_the_literal_loop(
    shape: tuple[int, int, int], seed: int, scale: float, iterations: int, axis: SoftmaxAxis
) -> None:
    rows, capsules, width = shape
    dim = capsules * width
    module = routing(dim, capsules, seed, iterations=iterations, softmax_over=axis)
    memory, query = random(rows, dim, seed=seed + 2, scale=scale), random(dim, seed=seed + 3, scale=scale)
    expected = oracle.route(
        memory.tolist(), query.tolist(), module.transform.weight.tolist(), module.transform.bias.tolist(),
        capsules, iterations, axis,
    )  # fmt: skip
    assert torch.allclose(module(memory, query), torch.tensor(expected, dtype=torch.float64), atol=1e-6, rtol=0)


@pytest.mark.parametrize("axis", AXES)
def test_masked_rows_are_as_good_as_absent(axis: SoftmaxAxis) -> None:
    module = routing(12, 3, softmax_over=axis)
    memory, query = random(5, 12, seed=1), random(12, seed=2)
    mask = torch.tensor([True, False, True, True, False])
    routed = module.route(memory, query, mask)
    assert torch.allclose(routed.output, module(memory[mask], query), atol=1e-12)
    assert (routed.weights[~mask] == 0).all()
    other = memory.clone()
    other[~mask] = 1e3
    assert torch.equal(routed.output, module(other, query, mask))


def test_row_weights_multiply_the_rows_parts() -> None:
    module = routing(12, 3, iterations=1)
    memory, query = random(5, 12, seed=1), random(12, seed=2)
    counts = torch.tensor([1.0, 0.5, 0.0, 2.0, 1.0], dtype=memory.dtype)
    plain, weighed = module.route(memory, query), module.route(memory, query, row_weights=counts)
    assert torch.allclose(weighed.weights, plain.weights * counts.unsqueeze(-1))
    sums = torch.einsum("nl,nlv->lv", plain.weights * counts.unsqueeze(-1), module.capsule_vectors(memory))
    assert torch.allclose(weighed.output, squash(sums).flatten(), atol=1e-12)


@pytest.mark.parametrize("axis", AXES)
def test_all_rows_masked_gives_zeros_and_finite_gradients(axis: SoftmaxAxis) -> None:
    module = routing(12, 3, softmax_over=axis)
    memory = random(4, 12, seed=1).requires_grad_()
    output = module(memory, random(12, seed=2), torch.zeros(4, dtype=torch.bool))
    output.sum().backward()
    assert (output == 0).all()
    assert memory.grad is not None and torch.isfinite(memory.grad).all()


@pytest.mark.parametrize("axis", AXES)
def test_batched_equals_one_by_one(axis: SoftmaxAxis) -> None:
    module = routing(12, 3, softmax_over=axis)
    memory, query = random(2, 1, 4, 5, 12, seed=1), random(2, 6, 1, 12, seed=2)
    mask = torch.rand(2, 1, 4, 5, generator=torch.Generator().manual_seed(3)) > 0.3
    together = module(memory, query, mask)
    assert together.shape == (2, 6, 4, 12)
    for batch in range(2):
        for q in range(6):
            for c in range(4):
                alone = module(memory[batch, 0, c], query[batch, q, 0], mask[batch, 0, c])
                assert torch.allclose(together[batch, q, c], alone, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(shape=shapes, seed=seeds, scale=scales, axis=st.sampled_from(AXES))
def test_order_of_rows_does_not_matter_and_norms_stay_below_one(
    shape: tuple[int, int, int], seed: int, scale: float, axis: SoftmaxAxis
) -> None:
    rows, capsules, width = shape
    module = routing(capsules * width, capsules, seed, softmax_over=axis)
    memory = random(rows, capsules * width, seed=seed + 2, scale=scale)
    query = random(capsules * width, seed=seed + 3, scale=scale)
    output = module(memory, query)
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    assert torch.allclose(output, module(memory[order], query), atol=1e-9)
    assert (output.unflatten(-1, (capsules, width)).norm(dim=-1) < 1).all()


@pytest.mark.parametrize("axis", AXES)
def test_one_iteration_in_closed_form(axis: SoftmaxAxis) -> None:
    module = routing(12, 3, iterations=1, softmax_over=axis)
    memory, query = random(5, 12, seed=1), random(12, seed=2)
    m_hat = module.capsule_vectors(memory)  # [5, 3, 4]
    q_hat = module.capsule_vectors(query)  # [3, 4]
    coupling = 1 / 3 if axis == "capsules" else 1 / 5
    p = torch.tanh(pearson(m_hat, q_hat.expand_as(m_hat)))
    expected = squash(((coupling + p).unsqueeze(-1) * m_hat).sum(dim=0)).flatten()
    assert torch.allclose(module(memory, query), expected, atol=1e-12)


def test_one_capsule_over_capsules_has_couplings_of_one() -> None:
    module = routing(8, 1, iterations=3, softmax_over="capsules")
    memory, query = random(4, 8, seed=1), random(8, seed=2)
    routed = module.route(memory, query)
    # With d = 1 the weights are 1 + p, and |p| <= tanh(1): the agreement α changes nothing.
    m_hat, q_hat = module.capsule_vectors(memory), module.capsule_vectors(query)
    for _ in range(3):
        p = torch.tanh(pearson(m_hat, q_hat.expand_as(m_hat)))
        v = squash(((1 + p).unsqueeze(-1) * m_hat).sum(dim=0))
        q_hat = (q_hat + v) / 2
    assert torch.allclose(routed.output, v.flatten(), atol=1e-12)


@pytest.mark.parametrize("axis", AXES)
def test_one_row_keeps_its_direction(axis: SoftmaxAxis) -> None:
    module = routing(12, 3, softmax_over=axis)
    memory = random(1, 12, seed=1)
    for seed in range(20):
        v = module(memory, random(12, seed=seed)).unflatten(-1, (3, 4))
        cosines = torch.nn.functional.cosine_similarity(v, module.capsule_vectors(memory)[0], dim=-1)
        assert torch.allclose(cosines.abs(), torch.ones(3, dtype=torch.float64), atol=1e-6)
        if axis == "memory":
            assert (cosines > 0).all()


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("masked", [False, True])
def test_gradcheck(axis: SoftmaxAxis, masked: bool) -> None:
    module = routing(6, 2, iterations=3, softmax_over=axis)
    mask = torch.tensor([True, False, True]) if masked else None
    memory, query = random(3, 6, seed=1).requires_grad_(), random(2, 6, seed=2).requires_grad_()
    weight, bias = module.transform.weight.detach().clone(), module.transform.bias.detach().clone()

    def run(memory: Tensor, query: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        state = {"transform.weight": weight, "transform.bias": bias}
        return torch.func.functional_call(module, state, (memory, query, mask))

    assert torch.autograd.gradcheck(run, (memory, query, weight.requires_grad_(), bias.requires_grad_()), atol=1e-6)


def test_gradient_reaches_the_query_through_every_iteration() -> None:
    memory, query = random(4, 12, seed=1), random(12, seed=2).requires_grad_()
    gradients = []
    for iterations in (1, 2, 3):
        (gradient,) = torch.autograd.grad(routing(12, 3, iterations=iterations)(memory, query).sum(), query)
        assert gradient.abs().sum() > 1e-6
        gradients.append(gradient)
    assert not torch.allclose(gradients[0], gradients[1]) and not torch.allclose(gradients[1], gradients[2])


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zero_and_constant_vectors_have_finite_gradients(axis: SoftmaxAxis, dtype: torch.dtype) -> None:
    module = DynamicMemoryRouting(12, 3, softmax_over=axis).to(dtype)
    for value in (0.0, 0.1):
        memory = torch.full((3, 12), value, dtype=dtype, requires_grad=True)
        query = torch.full((12,), value, dtype=dtype, requires_grad=True)
        output = module(memory, query)
        output.sum().backward()
        assert torch.isfinite(output).all()
        for tensor in (memory, query, *module.parameters()):
            assert tensor.grad is not None and torch.isfinite(tensor.grad).all()


@settings(max_examples=50, deadline=None)
@given(width=st.integers(3, 64), seed=seeds, scale=st.floats(1e-3, 1e3))
def test_squash_keeps_direction_and_bounds_the_norm(width: int, seed: int, scale: float) -> None:
    x = random(width, seed=seed, scale=scale)
    norm, squashed = x.norm(), squash(x)
    assert squashed.norm() <= 1
    assert torch.allclose(squashed.norm(), norm**2 / (1 + norm**2), rtol=1e-2)
    assert torch.nn.functional.cosine_similarity(x, squashed, dim=0) > 1 - 1e-9


def test_squash_of_zero_is_zero_with_a_finite_gradient() -> None:
    x = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    assert (squash(x) == 0).all()
    assert torch.autograd.gradcheck(squash, (random(4, seed=1).requires_grad_(),))
    squash(x).sum().backward()
    assert x.grad is not None and torch.isfinite(x.grad).all()


@settings(max_examples=50, deadline=None)
@given(width=st.integers(3, 40), seed=seeds, factor=st.floats(0.1, 50), shift=st.floats(-5, 5))
def test_pearson_properties(width: int, seed: int, factor: float, shift: float) -> None:
    x, y = random(width, seed=seed), random(width, seed=seed + 1)
    value = pearson(x, y)
    assert abs(float(value) - float(torch.corrcoef(torch.stack([x, y]))[0, 1])) < 1e-9
    assert torch.allclose(pearson(factor * x + shift, y), value, atol=1e-8)
    assert torch.allclose(pearson(-x, y), -value, atol=1e-12)
    assert torch.allclose(pearson(squash(x), squash(y)), value, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3, 1e6])
def test_pearson_without_variance_is_zero(dtype: torch.dtype, constant: float) -> None:
    x = torch.full((97,), constant, dtype=dtype)
    assert pearson(x, random(97, seed=1).to(dtype)) == 0
    assert pearson(x, x) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 10, "capsules": 4}, "does not divide"),
        ({"dim": 8, "capsules": 4}, "3 needed"),
        ({"dim": 12, "iterations": 0}, "at least 1"),
        ({"dim": 12, "softmax_over": "rows"}, "'capsules' or 'memory'"),
    ],
)
def test_bad_settings_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DynamicMemoryRouting(**arguments)


def test_bad_shapes_are_quoted_back() -> None:
    module = DynamicMemoryRouting(12)
    with pytest.raises(ValueError, match=r"\[5, 11\]"):
        module(torch.zeros(5, 11), torch.zeros(12))
    with pytest.raises(ValueError, match=r"\[13\]"):
        module(torch.zeros(5, 12), torch.zeros(13))
    with pytest.raises(ValueError, match="torch.bool"):
        module(torch.zeros(5, 12), torch.zeros(12), torch.ones(5))


def test_start_is_near_the_identity_and_leaves_the_global_generator_alone() -> None:
    state = torch.get_rng_state()
    weight = DynamicMemoryRouting(24).transform.weight
    assert torch.equal(state, torch.get_rng_state())
    assert (weight - torch.eye(24)).abs().max() < 0.01
    assert not torch.equal(weight, torch.eye(24))

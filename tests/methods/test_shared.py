"""What holds for every method on vectors, whatever is inside."""

from __future__ import annotations

import pytest
import torch

from dmin.errors import ConfigError, UnknownNameError
from dmin.methods import METHODS, FewShotMethod, create
from tests.methods.common import random

VECTOR_METHODS = [name for name, method in METHODS.items() if method.inputs == "vectors"]
ORDER_MATTERS = {"hatt"}  # methods whose score depends on the order of the support
DIM = 24


def build(name: str, way: int, shot: int) -> FewShotMethod:
    memory = random(12, DIM, seed=9).float()
    return create(name, DIM, way=way, shot=shot, base_memory=memory, seed=3).double().eval()


@pytest.mark.parametrize("name", VECTOR_METHODS)
@pytest.mark.parametrize(("way", "shot"), [(5, 1), (5, 5), (10, 1), (10, 5), (2, 3)])
def test_shapes_with_any_batch_of_episodes(name: str, way: int, shot: int) -> None:
    method = build(name, way, shot)
    support, query = random(3, 2, way, shot, DIM), random(3, 2, 7, DIM, seed=1)
    scores = method(support, query)
    assert scores.shape == (3, 2, 7, way)
    assert torch.allclose(scores[1, 1], method(support[1, 1], query[1, 1]), atol=1e-9)


@pytest.mark.parametrize("name", VECTOR_METHODS)
def test_class_query_and_support_order(name: str) -> None:
    method = build(name, 5, 4)
    support, query = random(5, 4, DIM), random(6, DIM, seed=1)
    scores = method(support, query)
    classes, queries = torch.tensor([3, 0, 4, 1, 2]), torch.tensor([5, 1, 0, 2, 4, 3])
    assert torch.allclose(method(support[classes], query), scores[:, classes], atol=1e-9)
    assert torch.allclose(method(support, query[queries]), scores[queries], atol=1e-9)
    same = torch.allclose(method(support[:, [2, 0, 3, 1]], query), scores, atol=1e-9)
    assert same == (name not in ORDER_MATTERS)


@pytest.mark.parametrize("name", VECTOR_METHODS)
def test_a_query_is_judged_alone(name: str) -> None:
    method = build(name, 5, 4)
    support, query = random(5, 4, DIM), random(6, DIM, seed=1)
    assert torch.allclose(method(support, query)[2:3], method(support, query[2:3]), atol=1e-9)


@pytest.mark.parametrize("name", VECTOR_METHODS)
def test_classes_of_unequal_size(name: str) -> None:
    """What stands in a masked row changes nothing, not even when it is huge."""
    method = build(name, 3, 4)
    support, query = random(3, 4, DIM), random(6, DIM, seed=1)
    mask = torch.tensor([[True] * 4, [True, True, False, False], [True, False, False, False]])
    scores = method(support, query, mask)
    assert torch.isfinite(scores).all()
    other = torch.where(mask.unsqueeze(-1), support, torch.full_like(support, 77.0))
    assert torch.allclose(method(other, query, mask), scores, atol=1e-9)
    assert torch.allclose(method(support, query, torch.ones(3, 4, dtype=torch.bool)), method(support, query), atol=1e-9)


@pytest.mark.parametrize("name", [name for name in VECTOR_METHODS if name != "logistic"])
@pytest.mark.parametrize("kind", ["zero", "identical"])
def test_gradients_are_finite_on_degenerate_support(name: str, kind: str) -> None:
    method = build(name, 3, 4).train()
    row = torch.zeros(DIM, dtype=torch.float64) if kind == "zero" else random(DIM)
    support = row.expand(3, 4, DIM).clone().requires_grad_()
    query = random(6, DIM, seed=1).requires_grad_()
    method.loss(method(support, query), torch.tensor([0, 1, 2, 0, 1, 2])).backward()
    for tensor in (support, query, *method.parameters()):
        assert tensor.grad is None or torch.isfinite(tensor.grad).all()


@pytest.mark.parametrize("name", VECTOR_METHODS)
def test_the_seed_alone_decides_the_start(name: str) -> None:
    state = torch.get_rng_state()
    first, again = build(name, 3, 4).state_dict(), build(name, 3, 4).state_dict()
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(first[key], again[key]) for key in first)


def test_unknown_method() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'nearest'"):
        create("neerest", 4, way=2, shot=1)


def test_a_method_without_options_of_its_own_names_the_shared_ones() -> None:
    with pytest.raises(ConfigError, match="nearest has no option 'scale': its options: input_map, input_unit, input_c"):
        create("nearest", DIM, way=2, shot=1, scale=3.0)

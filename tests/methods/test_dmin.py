"""DMIN: its parts, reductions, ablations and where its gradients reach."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dmin.errors import ConfigError
from dmin.methods import DMIN, create
from dmin.methods.base import cosine
from dmin.methods.dmin import capsule_counts, fitting_capsules
from dmin.methods.dmin_gram import gram_pays
from tests.methods.common import random

AXES = ["capsules", "memory"]


def model(**options: Any) -> DMIN:
    """In float64, its maps moved away from the identity."""
    method = DMIN(random(7, 24, seed=0), **options).double().eval()
    with torch.no_grad():
        for seed, weight in enumerate(method.parameters(), 50):
            if weight.ndim == 2 and weight.shape == (24, 24):
                weight.add_(0.1 * random(24, 24, seed=seed))
    return method


SUPPORT, QUERY = random(4, 3, 24, seed=1), random(6, 24, seed=2)


def test_the_names_that_stay() -> None:
    method = model()
    assert method.memory_routing is not method.query_routing
    assert method.base_memory.shape == (7, 24)
    assert method.scale.item() == 10.0
    shared = model(share_routing=True)
    assert shared.memory_routing is shared.query_routing


@pytest.mark.parametrize("axis", AXES)
def test_equals_a_loop_over_samples_queries_and_classes(axis: str) -> None:
    method = model(softmax_over=axis)
    scores = method(SUPPORT, QUERY)
    assert scores.shape == (6, 4)
    assert method.memory_routing is not None and method.query_routing is not None
    for q in range(6):
        for c in range(4):
            adapted = torch.stack([method.memory_routing(method.base_memory, sample) for sample in SUPPORT[c]])
            class_vector = method.query_routing(adapted, QUERY[q])
            assert torch.allclose(scores[q, c], method.scale * cosine(QUERY[q], class_vector), atol=1e-10)


@pytest.mark.parametrize("axis", AXES)
def test_reduces_to_a_cosine_to_the_only_example(axis: str) -> None:
    """Identity, one capsule, one shot, no memory: the nearest example."""
    method = DMIN(random(7, 24, seed=0), capsules=1, softmax_over=axis, use_memory=False).double()
    assert method.query_routing is not None
    with torch.no_grad():
        method.query_routing.transform.weight.copy_(torch.eye(24))
    support = random(4, 1, 24, seed=3)
    expected = 10 * cosine(QUERY[:, None], support[:, 0])
    assert torch.allclose(method(support, QUERY), expected, atol=1e-8)


def test_without_query_the_class_vector_is_the_mean_of_the_adapted_examples() -> None:
    method = model(use_query=False)
    expected = 10 * cosine(QUERY[:, None], method.adapt(SUPPORT).mean(dim=1))
    assert torch.allclose(method(SUPPORT, QUERY), expected, atol=1e-12)


def test_static_memory_differs_only_in_the_memory_module() -> None:
    dynamic, static = model(), model(memory_iterations=1)
    assert static.memory_routing is not None and static.memory_routing.iterations == 1
    assert static.query_routing is not None and static.query_routing.iterations == 3
    assert not torch.allclose(dynamic(SUPPORT, QUERY), static(SUPPORT, QUERY))


def test_scores_are_bounded_by_the_scale() -> None:
    assert (model()(100 * SUPPORT, QUERY).abs() <= 10 + 1e-9).all()


def test_gradient_reaches_support_memory_maps_and_scale() -> None:
    method = model().train()
    support = SUPPORT.clone().requires_grad_()
    method.loss(method(support, QUERY.detach()), torch.tensor([0, 1, 2, 3, 0, 1])).backward()
    for name, tensor in [("support", support), *method.named_parameters()]:
        assert tensor.grad is not None and tensor.grad.abs().sum() > 0, name
    frozen = model()
    frozen.base_memory.requires_grad_(False)
    support = SUPPORT.clone().requires_grad_()
    frozen(support, QUERY.detach())[:, 0].sum().backward()
    assert support.grad is not None and support.grad.abs().sum() > 0  # not detached inside the routing


def test_own_rows_are_hidden_in_training_only() -> None:
    method = model(mask_own_rows=True)
    rows = torch.tensor([2, 5, -1, 0])
    method.eval()
    assert torch.equal(method(SUPPORT, QUERY, base_rows=rows), method(SUPPORT, QUERY))
    method.train()
    scores = method(SUPPORT, QUERY, base_rows=rows)
    scores.sum().backward()
    assert method.base_memory.grad is not None
    assert (method.base_memory.grad[[2, 5, 0]] == 0).all() and method.base_memory.grad[1].abs().sum() > 0
    with torch.no_grad():
        method.base_memory[[2, 5, 0]] = 99.0
    assert torch.allclose(method(SUPPORT, QUERY, base_rows=rows), scores, atol=1e-12)


def test_hidden_rows_belong_to_their_own_episode() -> None:
    method = model(mask_own_rows=True).train()
    rows = torch.tensor([[2, 5, -1, 0], [1, 3, 4, -1]])
    both = method(torch.stack([SUPPORT, SUPPORT]), torch.stack([QUERY, QUERY]), base_rows=rows)
    for number in range(2):
        assert torch.allclose(both[number], method(SUPPORT, QUERY, base_rows=rows[number]), atol=1e-12)


def test_memory_can_be_kept_as_it_is() -> None:
    method = model(tune_memory=False).train()
    method(SUPPORT, QUERY).sum().backward()
    assert method.base_memory.grad is None


@pytest.mark.parametrize("options", [{}, {"softmax_over": "memory"}, {"use_query": False}, {"use_memory": False}])
@pytest.mark.parametrize("masked", [False, True])
def test_contributions_add_up_to_the_score(options: dict[str, Any], masked: bool) -> None:
    method = model(**options)
    mask = torch.tensor([[True, True, False], [True, False, False], [True] * 3, [True] * 3]) if masked else None
    shares = method.contributions(method.prepare(SUPPORT), QUERY, mask)
    assert shares.shape == (6, 4, 3)
    assert torch.allclose(shares.sum(dim=-1), method(SUPPORT, QUERY, mask), atol=1e-6)
    if mask is not None:
        assert (shares[:, ~mask] == 0).all()


def test_limited_support_leaves_small_classes_alone_and_makes_copies_weigh_like_one() -> None:
    method = model()
    plain = method(SUPPORT, QUERY)
    method.limit_support(3)
    assert torch.equal(method(SUPPORT, QUERY), plain)
    method.limit_support(1)
    one, copies = SUPPORT[:, :1], SUPPORT[:, :1].expand(4, 40, 24)
    mask = torch.ones(4, 40, dtype=torch.bool)
    first_round = model(iterations=1)
    first_round.limit_support(1)
    assert torch.allclose(first_round(copies, QUERY), first_round(one, QUERY), atol=1e-9)
    for given in (None, mask):
        assert torch.allclose(method(copies, QUERY, given), method(copies, QUERY), atol=1e-9)
        shares = method.contributions(method.prepare(copies), QUERY, given)
        assert torch.allclose(shares.sum(dim=-1), method(copies, QUERY, given), atol=1e-6)


def test_bad_settings_are_named() -> None:
    with pytest.raises(ValueError, match=r"\[0, 24\]"):
        DMIN(torch.zeros(0, 24))
    with pytest.raises(ConfigError, match="stage 1 makes it"):
        create("dmin", 24, way=5, shot=1)
    with pytest.raises(ConfigError, match=r"dmin: the base memory has shape \[3, 12\]; \[N, 24\] with N > 0"):
        create("dmin", 24, way=5, shot=1, base_memory=torch.zeros(3, 12))
    with pytest.raises(ConfigError, match="did you mean 'capsules'"):
        create("dmin", 24, way=5, shot=1, base_memory=torch.zeros(3, 24), capsule=2)
    with pytest.raises(ValueError, match="share_routing"):
        DMIN(torch.zeros(3, 24), share_routing=True, memory_iterations=1)


@pytest.mark.parametrize(("shots", "gram"), [(1, True), (5, True), (6, False), (9, False)])
def test_the_gram_form_is_used_while_the_examples_are_fewer_than_the_width_of_a_capsule(
    shots: int, gram: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """24 numbers in 4 capsules: 6 each. Both forms give the same scores."""
    method, support = model(), random(4, shots, 24, seed=1)
    used = []
    monkeypatch.setattr(method, "induce", lambda *given: (used.append(given), DMIN.induce(method, *given))[1])
    scores = method(support, QUERY)
    assert bool(used) != gram
    plain = method.cosine(QUERY, DMIN.induce(method, method.adapt(support), QUERY))
    assert torch.allclose(scores, plain, atol=1e-9)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize(("in_memory", "in_query"), [(8, 2), (1, 4), (2, 2)])
def test_each_module_has_its_own_number_of_capsules(axis: str, in_memory: int, in_query: int) -> None:
    """The Gram form stays exact: it equals the two steps written out."""
    method = model(memory_capsules=in_memory, query_capsules=in_query, softmax_over=axis)
    assert method.memory_routing is not None and method.query_routing is not None
    assert (method.memory_routing.capsules, method.query_routing.capsules) == (in_memory, in_query)
    mask = torch.tensor([[True] * 3, [True, True, False], [True, False, False], [True] * 3])
    for shown in (None, mask):
        adapted = method.adapt(SUPPORT)
        assert gram_pays(method.query_routing, adapted)
        plain = method.cosine(QUERY, method.induce(adapted, QUERY, shown))
        assert torch.allclose(method(SUPPORT, QUERY, shown), plain, atol=1e-10)
        sides = method.score_sides(method.support_side(method.prepare(SUPPORT), shown), method.query_side(QUERY))
        assert torch.allclose(sides, plain, atol=1e-10)


def test_capsules_sets_both_modules_and_the_counts_of_one_module_win() -> None:
    assert capsule_counts(384, 8, None, None) == (8, 8)
    assert capsule_counts(384, 8, 64, None) == (64, 8)
    assert capsule_counts(384, None, None, 8) == (4, 8)
    assert capsule_counts(384, None, 16, None) == (16, 4)
    assert (
        capsule_counts(384, None, 16, None, shared=True) == capsule_counts(384, None, None, 16, shared=True) == (16, 16)
    )
    with pytest.raises(ValueError, match="capsules=0"):
        model(memory_capsules=0)
    for dim in (10, 24, 33, 384, 768):  # whatever the width, the defaults divide it and leave 3 numbers
        for count in capsule_counts(dim, None, None, None):
            assert dim % count == 0 and dim // count >= 3
    assert fitting_capsules(384, 64) == 64 and fitting_capsules(24, 64) == 8 and fitting_capsules(10, 4) == 2


def test_one_routing_for_both_modules_needs_equal_counts() -> None:
    with pytest.raises(ValueError, match="memory_capsules=8, query_capsules=4; give capsules alone"):
        model(share_routing=True, memory_capsules=8, query_capsules=4)
    assert model(share_routing=True, capsules=2).memory_routing.capsules == 2  # type: ignore[union-attr]


def test_the_scale_has_a_learning_rate_of_its_own() -> None:
    assert model().traits.scalar_learning_rate == DMIN.traits.scalar_learning_rate
    assert model(tau_learning_rate=0.02).traits.scalar_learning_rate == 0.02
    with pytest.raises(ValueError, match="tau_learning_rate=0: a number above 0"):
        model(tau_learning_rate=0)


def test_a_random_start_is_an_ablation() -> None:
    method = DMIN(random(7, 24, seed=0), initialisation="random")
    again = DMIN(random(7, 24, seed=0), initialisation="random")
    assert method.memory_routing is not None and again.memory_routing is not None
    weight = method.memory_routing.transform.weight
    assert torch.equal(weight, again.memory_routing.transform.weight)
    assert weight.diagonal().mean().abs() < 0.3 and weight.abs().max() <= (3 / 24) ** 0.5
    with pytest.raises(ValueError, match="initialisation='zero': 'identity' or 'random'"):
        model(initialisation="zero")

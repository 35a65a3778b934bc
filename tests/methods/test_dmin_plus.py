"""DMIN-plus: what each of its parts does, and that its quick form is the plain one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dmin.errors import ConfigError
from dmin.methods import DMINPlus, EpisodeTensors, create, exact_shares, score_prepared
from dmin.methods.base import unit
from tests.methods.common import random

DIM = 12


def build(**options: object) -> DMINPlus:
    method = DMINPlus(random(7, DIM, seed=9).float(), seed=3, **options)  # type: ignore[arg-type]
    return method.double().eval()


def literal(method: DMINPlus, support: Tensor, query: Tensor, weights: Tensor | None = None) -> Tensor:
    """The class vector written down for each query, one class and one query at a time."""
    rows, asked = method.prepare(support), unit(method.project(query))
    scores = torch.empty(len(query), len(support), dtype=torch.float64)
    for q, vector in enumerate(asked):
        for c, examples in enumerate(rows):
            own = torch.ones(len(examples), dtype=torch.float64) if weights is None else weights[c]
            counts = (method.sharpness * own.sum().sqrt() * examples @ vector).exp() * own
            class_vector = ((counts / counts.sum()).unsqueeze(-1) * examples).sum(dim=0)
            cosine = vector @ class_vector / class_vector.norm()
            taken = taken_off(method, (own.unsqueeze(-1) * examples).sum(dim=0)) / own.sum()
            scores[q, c] = method.scale * (cosine - taken)
    return scores


def taken_off(method: DMINPlus, prototype: Tensor) -> Tensor:
    """β times the cosines with the memory, weighed by their own softmax; nothing while training."""
    cosines = unit(method.project(method.base_memory)) @ unit(prototype)
    return (0 if method.training else method.memory_weight) * ((10 * cosines).softmax(dim=-1) @ cosines)


@pytest.mark.parametrize("weighed", [False, True])
def test_the_quick_form_is_the_plain_one(weighed: bool) -> None:
    method = build(memory_weight=0.7)
    support, query = random(4, 3, DIM), random(5, DIM, seed=1)
    weights = random(4, 3, seed=2).abs() + 0.1 if weighed else None
    found = method(support, query, row_weights=weights)
    assert torch.allclose(found, literal(method, support, query, weights), atol=1e-12)


def test_without_its_parts_it_is_the_nearest_prototype() -> None:
    method = build(project=False, use_memory=False, use_query=False, scale=1.0)
    support, query = random(4, 3, DIM), random(5, DIM, seed=1)
    nearest = create("nearest", DIM, way=4, shot=3)
    assert torch.allclose(method(support, query), nearest(support, query), atol=1e-9)


def test_the_memory_takes_off_what_is_near_it() -> None:
    """A class that lies where a base class lies loses more than one that lies away from all of them."""
    method, plain = build(project=False), build(project=False, use_memory=False)
    support = torch.stack([method.base_memory[:1], -method.base_memory.mean(dim=0, keepdim=True)]).double()  # [2, 1, d]
    query = random(5, DIM, seed=1)
    near, far = (plain(support, query) - method(support, query)).unbind(dim=-1)
    assert (near > 0).all() and (far < near).all()
    assert torch.allclose(near, near[:1])  # whatever the query
    method.train()
    assert torch.allclose(method(support, query), plain(support, query))  # where classes are base classes themselves


def test_the_map_starts_at_the_mean_of_the_base_texts() -> None:
    mean = random(DIM, seed=4)
    for centre in (True, False):
        method = build(centre=centre)
        method.start_from_stage1(None, mean)
        moved = method.project(mean) - method.project(torch.zeros_like(mean))  # P·mean, whatever the bias
        assert torch.allclose(method.project(mean), torch.zeros_like(mean) if centre else moved, atol=1e-6)
    build(project=False).start_from_stage1(None, mean)  # nothing to start


def test_more_examples_are_looked_at_more_sharply() -> None:
    method = build()
    few, many = (method.support_side(random(2, count, DIM)).sharpness for count in (4, 16))
    assert torch.allclose(many, 2 * few) and few.flatten()[0].item() == pytest.approx(2 * method.sharpness)


def test_a_sharp_query_sees_the_nearest_example_alone() -> None:
    method = build(project=False, use_memory=False, sharpness=1e4, scale=1.0)
    support, query = random(4, 3, DIM), random(5, DIM, seed=1)
    cosines = torch.einsum("ckd,ld->lck", unit(support), unit(query))
    assert torch.allclose(method(support, query), cosines.max(dim=-1).values, atol=1e-9)


def test_shares_add_up_and_a_weight_of_nothing_is_a_mask() -> None:
    method = build()
    support, query = random(4, 3, DIM), random(5, DIM, seed=1)
    prepared = method.prepare(support)
    mask = torch.tensor([[True, True, True], [True, True, False], [True, False, False], [True, True, True]])
    scores = score_prepared(method, prepared, query, mask)
    assert torch.allclose(method.contributions(prepared, query, mask).sum(-1), scores, atol=1e-12)
    weights = torch.where(mask, 1.0, 0.0).double()
    assert torch.allclose(score_prepared(method, prepared, query, None, weights), scores, atol=1e-5)


def test_a_name_learns_its_weight() -> None:
    method = build().train()
    support, query = random(1, 4, 3, DIM), random(1, 8, DIM, seed=1)
    episodes = EpisodeTensors(
        support, query, torch.arange(4).repeat(2).unsqueeze(0), torch.full((1, 4), -1), named=True
    )
    plain, _ = method.episode_loss(episodes)
    plain.backward()
    assert method.log_name_weight.grad is not None and method.log_name_weight.grad.abs() > 0
    method.log_name_weight.data.fill_(1.0)
    weights = torch.ones(4, 3, dtype=torch.float64)
    weights[:, -1] = torch.e
    assert torch.allclose(
        method.episode_loss(episodes)[1][0], literal(method, support[0], query[0], weights), atol=1e-6
    )
    assert method.learned_name_weight() == pytest.approx(torch.e, rel=1e-6)


def test_what_was_read_from_the_memory_and_the_base_classes() -> None:
    method, rows = build(), random(3, DIM)
    weights = method.memory_weights(rows)
    taken = torch.stack([taken_off(method, row) for row in method.prepare(rows)])
    assert weights is not None and torch.allclose(weights.sum(-1), -taken / 3)
    assert build(use_memory=False).memory_weights(random(3, DIM)) is None
    assert method.base_scores(method.base_memory[2:3]).argmax() == 2


def test_what_the_rows_of_the_memory_have_in_common_tells_no_class() -> None:
    """Stage 1 leaves it open, so a shift of all rows changes nothing; a memory of one row is left as it is."""
    method, moved, query = build(), build(), random(5, DIM, seed=1)
    moved.base_memory.data += random(DIM, seed=8)
    assert torch.allclose(method.base_scores(query), moved.base_scores(query), atol=1e-9)
    as_they_are = build(centre=False)
    assert not torch.allclose(method.base_scores(query), as_they_are.base_scores(query), atol=1e-3)
    one = DMINPlus(random(1, DIM).float()).double().eval()
    assert one.base_scores(query).abs().max() > 0.1


def test_the_memory_must_fit() -> None:
    with pytest.raises(ConfigError, match="needs a base memory"):
        create("dmin-plus", DIM, way=5, shot=1)
    with pytest.raises(ConfigError, match=r"\[N, 12\]"):
        create("dmin-plus", DIM, way=5, shot=1, base_memory=torch.ones(3, 5))


# The contrast of the classes


def with_contrast(rounds: int, scale: float = 2.0) -> DMINPlus:
    method = build(project=False, use_memory=False, contrast=rounds)
    method.contrast_scale.data.fill_(scale)
    return method


def test_contrast_ends_at_logistic_regression() -> None:
    """After many rounds the directions are those that solve the regularised regression."""
    from sklearn.linear_model import LogisticRegression

    support = unit(random(4, 3, DIM))
    found = with_contrast(4000, scale=1.0)._contrast(support, None, None)  # [C, d]
    labels = torch.arange(4).repeat_interleave(3)
    model = LogisticRegression(C=float(torch.tensor(1.0).exp()), fit_intercept=False, tol=1e-10, max_iter=10_000)
    model.fit(support.flatten(0, 1).numpy(), labels.numpy())
    assert torch.allclose(found, torch.from_numpy(model.coef_), atol=1e-4)


def test_contrast_pushes_away_what_another_class_claims() -> None:
    support, query = random(4, 3, DIM), random(5, DIM, seed=1)
    assert not torch.allclose(with_contrast(10)(support, query), with_contrast(1)(support, query), atol=1e-3)
    order = torch.tensor([2, 0, 3, 1])
    method = with_contrast(10)
    assert torch.allclose(method(support[order], query), method(support, query)[:, order], atol=1e-9)
    method.contrast_weight.data.zero_()
    plain = build(project=False, use_memory=False)
    assert torch.allclose(method(support, query), plain(support, query), atol=1e-12)


def test_contrast_takes_ragged_support() -> None:
    method, query = with_contrast(10), random(5, DIM, seed=1)
    support = random(4, 3, DIM)
    mask = torch.tensor([[True] * 3, [True, True, False], [True] * 3, [True, False, False]])
    other = torch.where(mask.unsqueeze(-1), support, 9 + support)  # what is masked may be anything
    assert torch.allclose(method(support, query, mask), method(other, query, mask), atol=1e-12)
    batch = method(support.expand(2, -1, -1, -1), query.expand(2, -1, -1), mask.expand(2, -1, -1))
    assert torch.allclose(batch[1], method(support, query, mask), atol=1e-12)


def test_contrast_says_that_classes_depend_on_each_other() -> None:
    plain, joint = build(), with_contrast(5)
    assert not plain.traits.joint and plain.traits.gives_cosines and exact_shares(plain) is plain
    assert joint.traits.joint and not joint.traits.gives_cosines and exact_shares(joint) is None

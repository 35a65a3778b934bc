"""DMIN-plus: what each of its parts does, and that its quick form is the plain one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dmin.errors import ConfigError
from dmin.methods import DMINPlus, EpisodeTensors, create
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
            counts = (method.sharpness * examples @ vector).exp()
            if weights is not None:
                counts = counts * weights[c]
            class_vector = ((counts / counts.sum()).unsqueeze(-1) * examples).sum(dim=0)
            scores[q, c] = method.scale * vector @ class_vector / class_vector.norm()
    return scores


@pytest.mark.parametrize("weighed", [False, True])
def test_the_quick_form_is_the_plain_one(weighed: bool) -> None:
    method = build()
    method.gate.data.fill_(0.7)
    support, query = random(4, 3, DIM), random(5, DIM, seed=1)
    weights = random(4, 3, seed=2).abs() + 0.1 if weighed else None
    found = method(support, query, row_weights=weights)
    assert torch.allclose(found, literal(method, support, query, weights), atol=1e-12)


def test_without_its_parts_it_is_the_nearest_prototype() -> None:
    method = build(project=False, use_memory=False, use_query=False, scale=1.0)
    support, query = random(4, 3, DIM), random(5, DIM, seed=1)
    nearest = create("nearest", DIM, way=4, shot=3)
    assert torch.allclose(method(support, query), nearest(support, query), atol=1e-9)


def test_the_gate_starts_closed() -> None:
    support, query = random(4, 3, DIM), random(5, DIM, seed=1)
    with_memory, without = build(use_memory=True), build(use_memory=False)
    assert torch.allclose(with_memory(support, query), without(support, query), atol=1e-12)
    with_memory.gate.data.fill_(0.5)
    assert not torch.allclose(with_memory(support, query), without(support, query), atol=1e-3)


def test_a_sharp_query_sees_the_nearest_example_alone() -> None:
    method = build(project=False, use_memory=False, sharpness=1e4, scale=1.0)
    support, query = random(4, 3, DIM), random(5, DIM, seed=1)
    cosines = torch.einsum("ckd,ld->lck", unit(support), unit(query))
    assert torch.allclose(method(support, query), cosines.max(dim=-1).values, atol=1e-9)


def test_own_rows_are_hidden_in_training_only() -> None:
    method = build()
    method.gate.data.fill_(1.0)
    support, rows = random(2, 3, DIM), torch.tensor([4, 1])
    plain = method.adapt(support, rows)
    assert torch.allclose(plain, method.adapt(support))
    method.train()
    hidden = method.adapt(support, rows)
    assert not torch.allclose(hidden, plain, atol=1e-4)
    method.base_memory.data[rows] = 99.0 * random(2, DIM, seed=5)
    assert torch.allclose(method.adapt(support, rows), hidden, atol=1e-12)


def test_shares_add_up_and_a_weight_of_nothing_is_a_mask() -> None:
    method = build()
    support, query = random(4, 3, DIM), random(5, DIM, seed=1)
    prepared = method.prepare(support)
    mask = torch.tensor([[True, True, True], [True, True, False], [True, False, False], [True, True, True]])
    scores = method.score_prepared(prepared, query, mask)
    assert torch.allclose(method.contributions(prepared, query, mask).sum(-1), scores, atol=1e-12)
    weights = torch.where(mask, 1.0, 0.0).double()
    assert torch.allclose(method.score_prepared(prepared, query, None, weights), scores, atol=1e-5)


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
    assert method.name_weight == pytest.approx(torch.e, rel=1e-6)


def test_what_was_read_from_the_memory_and_the_base_classes() -> None:
    method = build()
    method.gate.data.fill_(0.5)
    weights = method.memory_weights(random(3, DIM))
    assert weights is not None and torch.allclose(weights.sum(-1), torch.full((3,), 0.5, dtype=torch.float64))
    assert build(use_memory=False).memory_weights(random(3, DIM)) is None
    assert method.base_scores(method.base_memory[2:3]).argmax() == 2


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
    assert not plain.joint and plain.gives_cosines and plain.divides_scores
    assert joint.joint and not joint.gives_cosines and not joint.divides_scores

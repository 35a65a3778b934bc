"""Induction Networks."""

from __future__ import annotations

import pytest
import torch

from dmin.methods import Induction
from dmin.routing import squash
from tests.methods.common import random

SUPPORT = random(4, 5, 24)


def method(**options: int | bool) -> Induction:
    return Induction(24, slices=8, **options).double()  # type: ignore[arg-type]


@pytest.mark.parametrize("iterations", [1, 2, 5])
def test_one_example_is_taken_as_it_is(iterations: int) -> None:
    induction = method(iterations=iterations)
    classes, couplings = induction.induce(SUPPORT[:, :1])
    assert (couplings == 1).all()
    assert torch.allclose(classes, squash(squash(induction.transform(SUPPORT[:, 0]))), atol=1e-12)


def test_one_iteration_is_the_squashed_mean() -> None:
    induction = method(iterations=1)
    samples = squash(induction.transform(SUPPORT))
    assert torch.allclose(induction.induce(SUPPORT)[0], squash(samples.mean(dim=1)), atol=1e-12)


def test_couplings_sum_to_one_and_are_uniform_for_equal_examples() -> None:
    induction = method()
    _, couplings = induction.induce(SUPPORT)
    assert torch.allclose(couplings.sum(dim=-1), torch.ones(4, dtype=torch.float64))
    assert couplings.std() > 0
    _, equal = induction.induce(SUPPORT[:, :1].expand(4, 5, 24))
    assert torch.allclose(equal, torch.full_like(equal, 0.2))


def test_class_vectors_are_short() -> None:
    large = 100 * SUPPORT[:, :1].expand(4, 5, 24)
    assert (method().induce(large)[0].norm(dim=-1) < 0.5).all()
    plain = method(squash_samples=False).induce(large)[0].norm(dim=-1)
    assert ((plain > 0.5) & (plain < 1)).all()


def test_an_outlier_counts_less() -> None:
    support = SUPPORT[:1, :1].expand(1, 5, 24).clone()
    support[0, 4] = -support[0, 4]
    _, couplings = method().induce(support)
    assert couplings[0, 4] < couplings[0, 0]


def test_gradients_reach_everything() -> None:
    induction = method().train()
    support = SUPPORT.clone().requires_grad_()
    induction.loss(induction(support, random(8, 24, seed=1)), torch.arange(8) % 4).backward()
    for name, tensor in [("support", support), *induction.named_parameters()]:
        assert tensor.grad is not None and tensor.grad.abs().sum() > 0, name

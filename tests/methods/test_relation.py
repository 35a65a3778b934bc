"""Relation Network and the neural tensor layer it shares with Induction Networks."""

from __future__ import annotations

import pytest
import torch

from dmin.errors import ConfigError
from dmin.methods import create
from dmin.methods.relation import Relation
from dmin.methods.relation_module import NeuralTensorLayer, relation_loss
from tests.methods.common import random


def test_tensor_layer_is_the_formula_pair_by_pair() -> None:
    layer = NeuralTensorLayer(6, 4, None, torch.Generator().manual_seed(0), normalise=False).double()
    classes, query = random(3, 6), random(5, 6, seed=1)
    scores = layer(classes, query)
    for q in range(5):
        for c in range(3):
            v = torch.stack([torch.relu(classes[c] @ layer.slices[h] @ query[q]) for h in range(4)])
            assert torch.allclose(scores[q, c], torch.sigmoid(layer.weight @ v + layer.bias), atol=1e-12)


@pytest.mark.parametrize(("dim", "numbers"), [(768, 100 * 256 * 256), (200, 100 * 200 * 200)])
def test_no_giant_tensor_by_surprise(dim: int, numbers: int) -> None:
    for name in ("relation", "induction"):
        method = create(name, dim, way=5, shot=1)
        layer = next(module for module in method.modules() if isinstance(module, NeuralTensorLayer))
        assert layer.slices.numel() == numbers
        assert method.note == ("projected to 256, normalised" if dim > 256 else "normalised")
    assert create("induction", 300, way=5, shot=1, project=None, slices=2, normalise=False).note == ""


@pytest.mark.parametrize("head", ["tensor", "concat"])
def test_scores_lie_between_0_and_1(head: str) -> None:
    method = Relation(24, head=head).double()  # type: ignore[arg-type]
    scores = method(random(4, 3, 24), random(6, 24, seed=1))
    assert ((scores > 0) & (scores < 1)).all()
    batched = method(random(2, 4, 3, 24), random(2, 6, 24, seed=1))
    assert batched.shape == (2, 6, 4)


def test_sum_grows_with_copies_and_mean_does_not() -> None:
    support, query = random(4, 1, 24), random(6, 24, seed=1)
    copies = support.expand(4, 5, 24)
    mean, total = (Relation(24, pool=pool, normalise=False).double() for pool in ("mean", "sum"))
    assert torch.allclose(mean(copies, query), mean(support, query), atol=1e-12)
    assert not torch.allclose(total(copies, query), total(support, query))


def test_normalised_inputs_start_with_products_of_variance_one() -> None:
    layer = NeuralTensorLayer(64, 50, None, torch.Generator().manual_seed(0)).double()
    classes, query = 40 * random(30, 64), 0.01 * random(30, 64, seed=1)
    assert torch.allclose(layer(classes, query), layer(3 * classes, 9 * query), atol=1e-9)
    scores = layer(classes, query)
    assert 0.05 < scores.std() < 0.4
    assert ((scores > 0.02) & (scores < 0.98)).double().mean() > 0.95


def test_the_plateau_of_a_constant_answer() -> None:
    labels = torch.arange(5).repeat(3)
    scores = torch.full((15, 5), 1 / 5)
    assert relation_loss(scores, labels).item() == pytest.approx((1 / 5) * (1 - 1 / 5))


def test_unknown_variants_are_named() -> None:
    with pytest.raises(ConfigError, match="tensor or concat"):
        Relation(24, head="dot")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["relation", "induction"])
@pytest.mark.parametrize("dim", [24, 300])
def test_an_identity_start_ranks_like_the_cosine(name: str, dim: int) -> None:
    """At 300 numbers both sides are first projected to 256, by the same orthonormal rows."""
    support = torch.nn.functional.normalize(random(4, 1, dim), dim=-1)
    query = support[:, 0] + 0.3 * torch.nn.functional.normalize(random(4, dim, seed=1), dim=-1)
    method = create(name, dim, way=4, shot=1, initialisation="identity").double().eval()
    scores = method(support, query)
    assert scores.argmax(dim=-1).tolist() == [0, 1, 2, 3]
    assert scores.diagonal().min() > 0.8 and (scores - scores.diagonal().diag()).max() < 0.5
    with pytest.raises(ConfigError, match="initialisation 'zero': use identity or random"):
        create(name, dim, way=4, shot=1, initialisation="zero")

"""LwoF."""

from __future__ import annotations

import pytest
import torch

from dmin.errors import ConfigError
from dmin.methods import EpisodeTensors, LwoF, create
from dmin.methods.base import cosine, masked_mean, unit
from tests.methods.common import random

SUPPORT, QUERY = random(3, 4, 24), random(6, 24, seed=1)


def method(**options: bool) -> LwoF:
    return LwoF(random(9, 24, seed=2).float(), **options).double().eval()


def test_weights_are_the_two_terms_exactly() -> None:
    lwof = method()
    with torch.no_grad():
        lwof.average_weight.copy_(random(24, seed=3))
        lwof.attention_weight.copy_(random(24, seed=4))
    z = unit(SUPPORT)
    read = lwof.attention(z) @ unit(lwof.base_memory)
    expected = lwof.average_weight * z.mean(dim=1) + lwof.attention_weight * read.mean(dim=1)
    assert torch.allclose(lwof.generate(SUPPORT), expected, atol=1e-12)


def test_without_attention_it_is_imprinting() -> None:
    lwof = method()
    with torch.no_grad():
        lwof.attention_weight.zero_()
    expected = 10 * cosine(QUERY.unsqueeze(1), masked_mean(unit(SUPPORT), None))
    assert torch.allclose(lwof(SUPPORT, QUERY), expected, atol=1e-9)


def test_attention_sums_to_one_over_the_kept_and_is_flat_at_scale_zero() -> None:
    lwof = method()
    kept = torch.ones(9, dtype=torch.bool)
    kept[[1, 4]] = False
    attention = lwof.attention(unit(SUPPORT), kept)
    assert torch.allclose(attention.sum(dim=-1), torch.ones(3, 4, dtype=torch.float64))
    assert (attention[..., [1, 4]] == 0).all()
    with torch.no_grad():
        lwof.attention_scale.zero_()
    flat = lwof.attention(unit(SUPPORT)) @ unit(lwof.base_memory)
    assert torch.allclose(flat, unit(lwof.base_memory).mean(dim=0).expand_as(flat), atol=1e-12)


def test_only_directions_count() -> None:
    lwof = method()
    scores = lwof(SUPPORT, QUERY)
    assert (scores.abs() <= 10 + 1e-9).all()
    assert torch.allclose(lwof(3 * SUPPORT, 0.2 * QUERY), scores, atol=1e-9)
    with torch.no_grad():
        lwof.base_memory.mul_(5)
    assert torch.allclose(lwof(SUPPORT, QUERY), scores, atol=1e-9)


def test_own_rows_are_left_out_in_training_and_get_no_gradient() -> None:
    lwof = method().train()
    rows = torch.tensor([[1, 4, 7]])
    base = random(1, 5, 24, seed=5)
    episodes = EpisodeTensors(
        SUPPORT.unsqueeze(0), QUERY.unsqueeze(0), torch.tensor([[0, 1, 2, 0, 1, 2]]), rows, base,
        torch.tensor([[0, 2, 3, 5, 8]]),
    )  # fmt: skip
    loss, scores = lwof.episode_loss(episodes)
    assert scores.shape == (1, 6, 3)
    loss.backward()
    for tensor in (lwof.base_memory, lwof.keys):
        assert tensor.grad is not None
        assert (tensor.grad[[1, 4, 7]] == 0).all() and (tensor.grad[[0, 2, 3, 5, 6, 8]].abs().sum(dim=1) > 0).all()


def test_the_joint_loss_sees_base_classes() -> None:
    episodes = EpisodeTensors(
        SUPPORT.unsqueeze(0), QUERY.unsqueeze(0), torch.tensor([[0, 1, 2, 0, 1, 2]]), torch.tensor([[1, 4, 7]]),
        random(1, 5, 24, seed=5), torch.tensor([[0, 2, 3, 5, 8]]),
    )  # fmt: skip
    joint, novel = method().train(), method(joint_loss=False).train()
    assert joint.episode_loss(episodes)[0] > novel.episode_loss(episodes)[0]
    scores = torch.cat([joint.base_scores(QUERY), joint(SUPPORT, QUERY)], dim=-1)
    assert scores.shape == (6, 12)


def test_base_scores_do_not_change_when_novel_classes_come() -> None:
    lwof = method()
    before = lwof.base_scores(QUERY)
    lwof(SUPPORT, QUERY)
    lwof(random(5, 2, 24, seed=8), QUERY)
    assert torch.equal(lwof.base_scores(QUERY), before)


def test_too_few_base_classes_are_refused_before_training() -> None:
    with pytest.raises(ConfigError, match="at least 6 base classes"):
        create("lwof", 24, way=5, shot=1, base_memory=torch.zeros(5, 24))
    assert method().traits.freezes_encoder and not method(tune_encoder=True).traits.freezes_encoder

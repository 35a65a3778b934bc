"""ATAML: attention over tokens, exact second-order adaptation."""

from __future__ import annotations

import pytest
import torch

from dmin.errors import ConfigError
from dmin.methods import ATAML, EpisodeTensors, TokenStates
from dmin.methods.ataml import token_attention
from tests.methods.common import World, random, train


def texts(*shape: int, seed: int = 0, tokens: int = 4) -> TokenStates:
    mask = torch.arange(tokens) < torch.randint(
        1, tokens + 1, (*shape, 1), generator=torch.Generator().manual_seed(seed)
    )
    return TokenStates(random(*shape, tokens, 12, seed=seed), mask)


def method(way: int = 3, **options: float) -> ATAML:
    return ATAML(12, way, **options).double().eval()  # type: ignore[arg-type]


SUPPORT, QUERY = texts(3, 2), texts(5, seed=1)


def test_attention_is_a_mean_at_the_start_and_zero_on_padding() -> None:
    flat = token_attention(QUERY, torch.zeros(12, dtype=torch.float64))
    assert torch.allclose(flat, QUERY.mask.double() / QUERY.mask.sum(dim=-1, keepdim=True))
    some = token_attention(QUERY, random(12, seed=3))
    assert torch.allclose(some.sum(dim=-1), torch.ones(5, dtype=torch.float64))
    assert (some[~QUERY.mask] == 0).all()


def test_more_padding_changes_nothing() -> None:
    ataml = method()

    def padded(states: TokenStates) -> TokenStates:
        extra = torch.full((*states.states.shape[:-2], 3, 12), 9.0, dtype=torch.float64)
        return TokenStates(torch.cat([states.states, extra], dim=-2), torch.nn.functional.pad(states.mask, (0, 3)))

    assert torch.allclose(ataml(padded(SUPPORT), padded(QUERY)), ataml(SUPPORT, QUERY), atol=1e-10)


def test_no_steps_is_the_initial_model_and_order_of_support_does_not_matter() -> None:
    plain = method(test_steps=0)
    mean = (QUERY.states * QUERY.mask.unsqueeze(-1)).sum(dim=-2) / QUERY.mask.sum(dim=-1, keepdim=True)
    assert torch.allclose(plain(SUPPORT, QUERY), mean @ plain.weight.T + plain.bias, atol=1e-12)
    turned = TokenStates(SUPPORT.states[:, [1, 0]], SUPPORT.mask[:, [1, 0]])
    ataml = method()
    assert torch.allclose(ataml(turned, QUERY), ataml(SUPPORT, QUERY), atol=1e-10)


def test_episodes_adapt_on_their_own() -> None:
    ataml = method()
    support, query = texts(2, 3, 2), texts(2, 5, seed=1)
    both = ataml(support, query)
    for number in range(2):
        one = ataml(support.at(torch.tensor(number)), query.at(torch.tensor(number)))
        assert torch.allclose(both[number], one, atol=1e-10)


def test_masked_support_is_as_good_as_absent() -> None:
    ataml = method()
    mask = torch.tensor([[True, True], [True, False], [True, True]])
    other = SUPPORT.states.clone()
    other[1, 1] = 50.0
    assert torch.allclose(ataml(TokenStates(other, SUPPORT.mask), QUERY, mask), ataml(SUPPORT, QUERY, mask), atol=1e-12)


def outer_gradient(ataml: ATAML, name: str) -> torch.Tensor:
    ataml.train()
    ataml.zero_grad()
    ataml.loss(ataml(SUPPORT, QUERY), torch.tensor([0, 1, 2, 0, 1])).backward()
    gradient = dict(ataml.named_parameters())[name].grad
    assert gradient is not None
    return gradient.clone()


@pytest.mark.parametrize("name", ["attention", "weight", "bias"])
def test_the_second_order_gradient_is_exact(name: str) -> None:
    """Against finite differences through the whole adaptation; the first-order gradient is another one."""
    ataml = method(inner_steps=2)
    exact = outer_gradient(ataml, name)
    parameter = dict(ataml.named_parameters())[name]
    numeric = torch.zeros_like(parameter)
    labels = torch.tensor([0, 1, 2, 0, 1])
    for index in range(parameter.numel()):
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter.view(-1)[index] += sign * 1e-5
            values.append(ataml.loss(ataml(SUPPORT, QUERY), labels).item())
            with torch.no_grad():
                parameter.view(-1)[index] -= sign * 1e-5
        numeric.view(-1)[index] = (values[0] - values[1]) / 2e-5
    assert torch.allclose(exact, numeric, atol=1e-7)
    first_order = method(inner_steps=2, first_order=True)
    assert first_order.note == "first order"
    assert not torch.allclose(outer_gradient(first_order, name), exact, atol=1e-6)


def test_the_encoder_gets_a_gradient_directly_and_through_the_inner_steps() -> None:
    ataml = method().train()
    support = TokenStates(SUPPORT.states.clone().requires_grad_(), SUPPORT.mask)
    ataml(support, TokenStates(QUERY.states.detach(), QUERY.mask)).sum().backward()
    assert support.states.grad is not None and support.states.grad.abs().sum() > 0
    assert (support.states.grad[~SUPPORT.mask] == 0).all()


def test_works_without_gradients_and_in_inference_leaves_weights_alone() -> None:
    ataml = method()
    before = [weight.clone() for weight in ataml.parameters()]
    with torch.no_grad():
        scores = ataml(SUPPORT, QUERY)
    assert not scores.requires_grad
    assert all(torch.equal(a, b) for a, b in zip(before, ataml.parameters(), strict=True))


def test_learns() -> None:
    """One informative token among noisy ones: attention must find it."""
    world = World(shot=3)
    world.noise[6:] = 0.1
    marker = torch.zeros(24)
    marker[23] = 3.0

    def tokens(vectors: torch.Tensor) -> TokenStates:
        noise = 2.5 * torch.randn(*vectors.shape[:-1], 3, 24, generator=world.generator)
        noise[..., 23] = 0.0
        states = torch.cat([noise, (vectors + marker).unsqueeze(-2)], dim=-2)
        return TokenStates(states, torch.ones(states.shape[:-1], dtype=torch.bool))

    def batch(count: int = 8) -> EpisodeTensors:
        e = world.episodes(count)
        return EpisodeTensors(tokens(e.support), tokens(e.query), e.labels, e.base_rows)

    def accuracy() -> float:
        test = batch(60)
        with torch.no_grad():
            return float((ataml.eval()(test.support, test.query).argmax(-1) == test.labels).float().mean())

    ataml = ATAML(24, world.way)
    start = accuracy()
    train(ataml, batch, 150, 3e-2)
    end = accuracy()
    assert start < 0.7, start
    assert end > 0.9, end


def test_another_number_of_classes_is_refused() -> None:
    with pytest.raises(ConfigError, match="trained for 5 classes, not 3"):
        method(way=5)(SUPPORT, QUERY)

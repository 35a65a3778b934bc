"""What stands in front of every method: centring, a linear map, norm 1."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dmin.errors import ConfigError
from dmin.methods import DMIN, METHODS, FewShotMethod, PreparedScoring, create, exact_shares, score_prepared
from dmin.methods.base import EpisodeTensors, complete_options, early_options, unit
from dmin.methods.input_map import InputMap, starting_memory
from tests.methods.common import World, random, train

DIM = 24
VECTOR_METHODS = [name for name, method in METHODS.items() if method.inputs == "vectors"]
TRAINED = [name for name in VECTOR_METHODS if METHODS[name].traits.meta_trained]
MEMORY = random(12, DIM, seed=9).float()


def build(name: str, **options: Any) -> FewShotMethod:
    return create(name, DIM, way=3, shot=4, base_memory=MEMORY, seed=3, **options).double().eval()


def moved(method: FewShotMethod) -> FewShotMethod:
    """Its map away from the identity, its mean away from 0."""
    found = method.input_map
    assert found is not None and found.linear is not None
    with torch.no_grad():
        found.linear.weight.add_(0.2 * random(DIM, DIM, seed=5))
        found.linear.bias.add_(0.2 * random(DIM, seed=6))
        found.mean.add_(random(DIM, seed=7))
    return method


@pytest.mark.parametrize("name", TRAINED)
def test_every_method_sees_mapped_vectors_once_whatever_way_they_come(name: str) -> None:
    """Scores with a map equal those of the plain method on vectors that were mapped before."""
    method, plain = moved(build(name, input_map=True, input_unit=True, input_centre=True)), build(name)
    support, query = random(3, 4, DIM), random(6, DIM, seed=1)
    assert method.input_map is not None
    expected = plain(method.input_map(support), method.input_map(query))
    assert not torch.allclose(plain(support, query), expected, atol=1e-6)
    assert torch.allclose(method(support, query), expected, atol=1e-12)
    assert torch.allclose(method(support=support, query=query), expected, atol=1e-12)
    if isinstance(method, PreparedScoring):
        assert torch.allclose(score_prepared(method, method.prepare(support), query), expected, atol=1e-9)
        if shares := exact_shares(method):
            parts = shares.contributions(method.prepare(support), query)
            assert torch.allclose(parts.sum(dim=-1), expected, atol=1e-9)


@pytest.mark.parametrize("name", TRAINED)
def test_the_loss_of_an_episode_is_that_of_mapped_vectors(name: str) -> None:
    method, plain = moved(build(name, input_map=True, input_centre=True)), build(name)
    found = method.input_map
    assert found is not None
    raw = random(1, 3, 4, DIM), random(1, 6, DIM, seed=1), random(1, 5, DIM, seed=2)
    labels, rows, others = (
        torch.tensor([[0, 1, 2, 0, 1, 2]]),
        torch.tensor([[0, 1, 2]]),
        torch.tensor([[5, 6, 7, 8, 9]]),
    )
    asked = EpisodeTensors(raw[0], raw[1], labels, rows, raw[2], others)
    mapped = EpisodeTensors(found(raw[0]), found(raw[1]), labels, rows, found(raw[2]), others)
    assert torch.allclose(method.episode_loss(asked)[0], plain.episode_loss(mapped)[0], atol=1e-12)


def test_base_classes_and_the_memory_module_are_reached_through_the_map() -> None:
    method, plain = moved(build("dmin", input_map=True, input_centre=True)), build("dmin")
    assert isinstance(method, DMIN) and isinstance(plain, DMIN) and method.input_map is not None
    x = random(5, DIM)
    adapt = method.memory_module()
    assert adapt is not None
    assert torch.allclose(adapt(x), plain.adapt(method.input_map(x)), atol=1e-12)
    assert torch.allclose(method.base_scores(x), plain.base_scores(method.input_map(x)), atol=1e-12)
    weights, expected = method.memory_weights(x), plain.memory_weights(method.input_map(x))
    assert weights is not None and expected is not None and torch.allclose(weights, expected, atol=1e-12)


@pytest.mark.parametrize("name", TRAINED)
def test_a_map_starts_at_the_identity_is_saved_and_gets_gradients(name: str) -> None:
    method = create(name, DIM, way=3, shot=4, base_memory=MEMORY, seed=3, input_map=True)
    assert method.input_map is not None and method.input_map.linear is not None
    assert torch.allclose(method.input_map.linear.weight, torch.eye(DIM), atol=0.01)
    assert (
        "input_map.linear.weight" in method.state_dict() and "input_map.linear.weight" not in build(name).state_dict()
    )
    support, query = random(3, 4, DIM).float(), random(6, DIM, seed=1).float()
    method.loss(method(support, query), torch.tensor([0, 1, 2, 0, 1, 2])).backward()
    gradient = method.input_map.linear.weight.grad
    assert gradient is not None and gradient.abs().sum() > 0


def test_a_method_that_learns_nothing_of_its_own_learns_by_the_map() -> None:
    """Prototypes without a map of their own: only the one in front can find the directions that matter."""
    world = World(shot=5)
    options = {"base_memory": world.means, "project": False}
    plain = create("prototypical", world.dim, way=world.way, shot=5, **options)
    method = create("prototypical", world.dim, way=world.way, shot=5, input_map=True, **options)
    train(method, lambda: world.episodes(4), 150, 1e-2)
    assert world.accuracy(method) > world.accuracy(plain) + 0.1


def test_untrained_methods_can_be_centred_but_not_mapped() -> None:
    with pytest.raises(ConfigError, match="nearest is not trained, so an input_map would stay at the identity"):
        build("nearest", input_map=True)
    method = build("nearest", input_centre=True)
    assert method.input_map is not None
    mean = random(DIM, seed=7)
    method.input_map.start(mean)
    support, query = random(3, 4, DIM), random(6, DIM, seed=1)
    assert torch.allclose(method(support, query), build("nearest")(support - mean, query - mean), atol=1e-12)
    with pytest.raises(ConfigError, match="ataml has no option 'input_unit'"):
        create("ataml", DIM, way=3, shot=4, input_unit=True)


def test_the_memory_starts_in_the_space_of_the_vectors() -> None:
    mean = MEMORY.mean(dim=0)
    assert torch.equal(starting_memory(MEMORY, mean, {}), MEMORY)
    assert torch.allclose(starting_memory(MEMORY, mean, {"input_unit": True}), unit(MEMORY))
    centred = starting_memory(MEMORY, mean, {"input_centre": True})
    squared = (MEMORY**2).sum(dim=-1).mean() - (mean**2).sum()
    assert torch.allclose((centred**2).sum(dim=-1), squared.expand(12), rtol=1e-4)
    assert torch.allclose(unit(centred), unit(MEMORY - mean), atol=1e-5)
    assert InputMap.from_options(DIM, 0, {"input_map": False}) is None


def test_a_stored_head_keeps_the_options_it_was_made_with() -> None:
    stored = complete_options(DMIN, {"iterations": 2})
    assert stored["iterations"] == 2 and {"capsules", "softmax_over", "memory_capsules"} <= set(stored)
    assert early_options(DMIN, {"iterations": 2}) == {"capsules": 4, "iterations": 2}  # as version 0.1 left it out
    assert early_options(DMIN, stored) == stored

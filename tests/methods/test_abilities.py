"""The optional abilities: which method has which, and what stands in for a missing one."""

from __future__ import annotations

import pytest
import torch

from dmin.methods import (
    METHODS,
    DMINPlus,
    ExactShares,
    FewShotMethod,
    FineTunesEncoder,
    KeepsBaseClasses,
    LearnsNameWeight,
    LimitsSupport,
    PreparedScoring,
    ReadsMemory,
    RewritesSupport,
    StartsFromStage1,
    create,
    exact_shares,
    name_weight,
    prepared_scoring,
    score_prepared,
)
from tests.methods.common import random

DIM = 12
MEMORY = {"lwof", "dmin", "dmin-plus"}
VECTOR_METHODS = [name for name, method in METHODS.items() if method.inputs == "vectors"]


def build(name: str, shot: int = 3, **options: object) -> FewShotMethod:
    return create(name, DIM, way=2, shot=shot, base_memory=random(7, DIM, seed=9).float(), **options).double().eval()


@pytest.mark.parametrize(
    ("ability", "methods"),
    [
        (PreparedScoring, {*MEMORY, "nearest"}),
        (ExactShares, {"dmin", "dmin-plus", "nearest"}),
        (KeepsBaseClasses, MEMORY),
        (ReadsMemory, {"dmin", "dmin-plus"}),
        (RewritesSupport, {"dmin"}),
        (LearnsNameWeight, {"dmin-plus"}),
        (StartsFromStage1, MEMORY),
        (LimitsSupport, {"dmin"}),
        (FineTunesEncoder, {"finetune"}),
    ],
)
def test_who_has_which_ability(ability: type, methods: set[str]) -> None:
    assert {name for name, method in METHODS.items() if issubclass(method, ability)} == methods
    assert {name for name in METHODS if isinstance(build(name), ability)} == methods


@pytest.mark.parametrize("name", VECTOR_METHODS)
@pytest.mark.parametrize("masked", [False, True])
def test_prepared_scoring_is_forward_in_two_steps(name: str, masked: bool) -> None:
    method = build(name)
    support, query = random(2, 3, DIM), random(5, DIM, seed=1)
    mask = torch.tensor([[True, True, False], [True] * 3]) if masked else None
    with torch.no_grad():
        prepared = prepared_scoring(method).prepare(support)
        assert torch.equal(score_prepared(method, prepared, query, mask), method(support, query, mask))


@pytest.mark.parametrize("name", [*sorted(MEMORY), "nearest"])
def test_a_row_of_weight_two_is_a_row_given_twice(name: str) -> None:
    method = build(name, **({"iterations": 1} if name == "dmin" else {}))
    prepared, query = prepared_scoring(method).prepare(random(2, 3, DIM)), random(5, DIM, seed=1)
    weights = torch.tensor([[1.0, 2.0, 1.0]] * 2, dtype=torch.float64)
    twice = score_prepared(method, prepared[:, [0, 1, 1, 2]], query)
    assert torch.allclose(score_prepared(method, prepared, query, None, weights), twice, atol=1e-9)


@pytest.mark.parametrize("name", sorted(MEMORY))
def test_the_scale_of_stage_1_is_taken_over_unless_the_user_gave_one(name: str) -> None:
    method = build(name)
    assert isinstance(method, StartsFromStage1)
    before = method.temperature
    method.start_from_stage1(None, torch.zeros(DIM))
    assert method.temperature == before
    method.start_from_stage1(7.5, torch.zeros(DIM))
    assert method.temperature == 7.5


def test_shares_and_weights_of_names_where_a_method_has_none() -> None:
    assert exact_shares(build("lwof")) is None and name_weight(build("lwof")) == 1.0
    plus = build("dmin-plus")
    assert isinstance(plus, DMINPlus) and exact_shares(plus) is plus
    plus.log_name_weight.data.fill_(0.5)
    assert name_weight(plus) == pytest.approx(1.6487, abs=1e-4)


def test_the_memory_module_is_an_ability_only_while_it_is_switched_on() -> None:
    on, off = build("dmin"), build("dmin", use_memory=False)
    assert isinstance(on, RewritesSupport) and isinstance(off, RewritesSupport)
    module, support = on.memory_module(), random(2, 3, DIM)
    assert module is not None and not torch.equal(module(support), support)
    assert off.memory_module() is None

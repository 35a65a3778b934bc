"""Classes in blocks: what is kept when classes come and go, and that blocks change no score."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dmin.classifier import knowledge as blocks_of
from dmin.classifier.knowledge import ClassSupport, Knowledge
from dmin.classifier.scoring import Model
from dmin.methods import METHODS, create

WIDTH = 24


def entry(label: int, rows: int) -> ClassSupport:
    vectors = torch.randn(rows, WIDTH, generator=torch.Generator().manual_seed(label))
    return ClassSupport(label, tuple(f"{label} {row}" for row in range(rows)), False, vectors, vectors)


def known(*sizes: int) -> Knowledge:
    return Knowledge(tuple(entry(label, rows) for label, rows in enumerate(sizes)))


def columns(knowledge: Knowledge) -> list[int]:
    return [int(str(member.label)) for block in knowledge.blocks for member in block.entries]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_of, "BLOCK_ROWS", 8)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_hold_every_class_once_with_others_of_its_size() -> None:
    knowledge = known(3, 1, 3, 300, 3, 1, 5)
    assert sorted(columns(knowledge)) == list(range(7))
    for block in knowledge.blocks:
        assert len({blocks_of.padded_size(member) for member in block.entries}) == 1
        assert len(block.entries) == 1 or len(block.entries) * len(block.entries[0].texts) <= 8


@pytest.mark.usefixtures("small_blocks")
def test_a_new_class_changes_one_block_and_leaves_the_tensors_of_the_others() -> None:
    method = create("nearest", 0, way=0, shot=0)
    before = known(2, 2, 2, 2, 2, 2)  # blocks of four and two
    sides = [block.side(method, 1.0) for block in before.blocks]
    after = before.replaced([entry(6, 2)])
    assert after.blocks[0] is before.blocks[0] and after.blocks[0].side(method, 1.0) is sides[0]
    assert [len(block.entries) for block in after.blocks] == [4, 3]
    assert torch.equal(after.blocks[1].side(method, 1.0)[:2], sides[1])
    third = after.replaced([entry(2, 1)])  # another number of examples: it leaves its block
    assert sorted(columns(third)) == list(range(7)) and third.blocks[1] is after.blocks[1]


@pytest.mark.usefixtures("small_blocks")
def test_removed_classes_leave_no_nearly_empty_blocks() -> None:
    knowledge = known(*[2] * 64)
    for label in range(64):
        if label % 4:
            knowledge = knowledge.without(label)
    assert sorted(columns(knowledge)) == list(range(0, 64, 4))
    assert len(knowledge.blocks) <= 4 + 2 * 16 * 2 / 8


def scores(name: str, knowledge: Knowledge, query: Tensor) -> Tensor:
    base = torch.randn(6, WIDTH, generator=torch.Generator().manual_seed(5))
    method = create(name, WIDTH, way=5, shot=3, base_memory=base).eval()
    return Model(method, None).cosines(query, knowledge)


@pytest.mark.parametrize("name", [name for name, cls in METHODS.items() if cls.inputs == "vectors" and name != "hatt"])
def test_blocks_change_no_score(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    knowledge, query = known(3, 1, 3, 2, 3, 1, 5), torch.randn(9, WIDTH, generator=torch.Generator().manual_seed(99))
    whole = scores(name, knowledge, query)
    monkeypatch.setattr(blocks_of, "BLOCK_ROWS", 4)
    again = scores(name, known(3, 1, 3, 2, 3, 1, 5), query)
    assert whole.shape == (9, 7)
    assert torch.allclose(again, whole, atol=1e-5)

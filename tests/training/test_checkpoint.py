"""Checkpoints: what is kept, what is refused, what is put back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from dmin.errors import CheckpointError
from dmin.training.checkpoint import (
    CheckpointStore,
    LoopState,
    learned_state,
    load_learned,
    load_optimizer,
    optimizer_tensors,
)


def trained() -> tuple[nn.Module, torch.optim.AdamW]:
    network = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    network[1].bias.requires_grad_(False)
    named = [(name, weight) for name, weight in network.named_parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW([{"params": named}], lr=0.1)
    network(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return network, optimizer


def store(folder: Path, warnings: list[str] | None = None) -> CheckpointStore:
    return CheckpointStore(folder, (warnings if warnings is not None else []).append)


def test_everything_comes_back(tmp_path: Path) -> None:
    network, optimizer = trained()
    checkpoints = store(tmp_path)
    state = LoopState(stage=2, step=40, best_step=30, best_score=0.5, stale=1)
    checkpoints.save_best(2, 30, learned_state(network))
    checkpoints.save(state, learned_state(network), optimizer_tensors(optimizer))
    found = checkpoints.latest()
    assert found is not None and found.state == state
    other, fresh = trained()
    load_learned(other, found.weights)
    load_optimizer(fresh, found.optimizer)
    assert all(
        torch.equal(a, b) for a, b in zip(network.parameters(), other.parameters(), strict=True) if a.requires_grad
    )
    assert set(learned_state(network)) == {"0.weight", "0.bias", "1.weight", "1.bias"} == set(found.best)
    one, two = optimizer_tensors(optimizer), optimizer_tensors(fresh)
    assert len(one) == 9 and all(torch.equal(one[key], two[key]) for key in one)


def test_two_are_kept_with_their_best(tmp_path: Path) -> None:
    network, optimizer = trained()
    checkpoints = store(tmp_path)
    for step in range(0, 60, 10):
        best = step // 20 * 20
        if best == step:
            checkpoints.save_best(1, step, learned_state(network))
        state = LoopState(stage=1, step=step, best_step=best, best_score=0.1)
        checkpoints.save(state, learned_state(network), optimizer_tensors(optimizer))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "best1-0000040.safetensors",
        "stage1-0000040.best-0000040.safetensors",
        "stage1-0000050.best-0000040.safetensors",
    ]


@pytest.mark.parametrize("damage", ["cut", "empty", "best"])
def test_a_damaged_one_is_named_and_the_one_before_is_used(tmp_path: Path, damage: str) -> None:
    network, optimizer = trained()
    warnings: list[str] = []
    checkpoints = store(tmp_path, warnings)
    for step in (10, 20):
        checkpoints.save_best(1, step, learned_state(network))
        state = LoopState(stage=1, step=step, best_step=step, best_score=0.1)
        checkpoints.save(state, learned_state(network), optimizer_tensors(optimizer))
    newest = tmp_path / ("best1-0000020.safetensors" if damage == "best" else "stage1-0000020.best-0000020.safetensors")
    newest.write_bytes(newest.read_bytes()[: 0 if damage == "empty" else 100])
    found = checkpoints.latest()
    assert found is not None and found.state.step == 10
    assert len(warnings) == 1 and "stage1-0000020" in warnings[0] and "refused" in warnings[0]
    for path in tmp_path.glob("stage*"):
        path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="all 2 are damaged"):
        checkpoints.latest()


def test_nothing_there(tmp_path: Path) -> None:
    assert store(tmp_path / "none").latest() is None


def test_foreign_weights_are_refused() -> None:
    network, optimizer = trained()
    with pytest.raises(CheckpointError, match="not those of this configuration"):
        load_learned(network, {"0.weight": torch.zeros(2, 3)})
    with pytest.raises(CheckpointError, match="optimizer"):
        load_optimizer(optimizer, {"elsewhere/exp_avg": torch.zeros(1)})

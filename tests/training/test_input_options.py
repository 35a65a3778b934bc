"""Stage 2 starts a head with input options from what stage 1 knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from dmin.methods import DMIN
from dmin.methods.base import unit
from dmin.training import load_config, prepare_task
from dmin.training.loop import LoopSettings, make_optimizer
from dmin.training.stage1 import BaseKnowledge
from dmin.training.stage2 import EpisodeNetwork
from dmin.training.train import build_head

DIM = 24


def head(words_file: Path, **options: Any) -> tuple[DMIN, BaseKnowledge]:
    config = load_config(
        overrides={"data": str(words_file), "split_seed": 1, "split_sizes": (4, 2, 3), "method": "dmin", "way": 2,
                   "queries": 4, "options": options}
    )  # fmt: skip
    task = prepare_task(config, lambda message: None)
    generator = torch.Generator().manual_seed(0)
    memory = torch.randn(len(task.base_classes), DIM, generator=generator)
    knowledge = BaseKnowledge(memory, 7.0, torch.randn(DIM, generator=generator))
    method = build_head(config, task, DIM, knowledge)
    assert isinstance(method, DMIN)
    return method, knowledge


def test_mean_and_memory_of_stage_1_pass_the_options_too(words_file: Path) -> None:
    method, knowledge = head(words_file, input_centre=True, input_unit=True)
    assert method.input_map is not None and torch.equal(method.input_map.mean, knowledge.mean)
    expected = unit(knowledge.memory - knowledge.memory.mean(dim=0))
    assert torch.allclose(method.base_memory, expected, atol=1e-5) and method.scale.item() == 7.0
    plain, knowledge = head(words_file)
    assert plain.input_map is None and torch.equal(plain.base_memory, knowledge.memory)


@pytest.mark.parametrize("rate", [None, 0.01])
def test_the_scale_of_dmin_learns_at_its_own_rate(words_file: Path, rate: float | None) -> None:
    method, _ = head(words_file, tau_learning_rate=rate)
    settings = LoopSettings(1e-4, 1e-5, 0.0, 0.0, 1.0, 0, method.traits.scalar_learning_rate)
    groups = make_optimizer(EpisodeNetwork(None, method), settings).param_groups
    found = next(group for group in groups if any(weight is method.scale for weight in group["params"]))
    assert found["lr"] == (rate or 1e-4)
    assert {group["lr"] for group in groups} == {1e-4, rate or 1e-4}

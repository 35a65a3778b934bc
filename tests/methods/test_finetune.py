"""Fine-tuning in each episode anew."""

from __future__ import annotations

import torch

from dmin.encoder import Encoder
from dmin.methods import FineTune
from tests.conftest import WORDS
from tests.methods.common import World, random


def test_the_head_learns_the_support_by_heart() -> None:
    support = random(4, 3, 24).float()
    method = FineTune(24)
    scores = method(support, support.flatten(0, 1))
    assert (scores.argmax(-1) == torch.arange(4).repeat_interleave(3)).all()
    assert (
        FineTune(24, steps=0)(support, support.flatten(0, 1)).argmax(-1) != torch.arange(4).repeat_interleave(3)
    ).any()


def test_the_head_works_on_new_texts_and_needs_no_gradient_outside() -> None:
    world = World(shot=3)
    world.noise[6:] = 0.1
    assert world.accuracy(FineTune(24, learning_rate=1e-2)) > 0.9


def test_episodes_do_not_know_each_other() -> None:
    support, query = random(2, 3, 2, 24).float(), random(2, 5, 24, seed=1).float()
    method = FineTune(24, steps=20)
    both = method(support, query)
    for number in (1, 0):
        assert torch.allclose(both[number], method(support[number], query[number]), atol=1e-4)
    mask = torch.tensor([[True, True], [True, False], [True, True]])
    other = support[0].clone()
    other[1, 1] = 99.0
    assert torch.equal(method(other, query[0], mask), method(support[0], query[0], mask))


def test_full_fine_tuning_learns_and_leaves_the_encoder_untouched(tiny_encoder: Encoder) -> None:
    method = FineTune(24, steps=40, encoder_learning_rate=1e-3)
    texts = [
        [f"{word} {number}" for number, word in enumerate(WORDS[label].split()[:3])] for label in ("car", "sea", "sky")
    ]
    support = [tiny_encoder.tokenize(group) for group in texts]
    flat = [row for rows in support for row in rows]
    before = {name: weight.clone() for name, weight in tiny_encoder.network.state_dict().items()}
    state = torch.get_rng_state()
    scores = method.score_texts(tiny_encoder.network, support, flat)
    assert (scores.argmax(-1).cpu() == torch.arange(3).repeat_interleave(3)).all()
    assert all(torch.equal(before[name], weight) for name, weight in tiny_encoder.network.state_dict().items())
    assert torch.equal(state, torch.get_rng_state()) and not tiny_encoder.network.training
    assert torch.equal(scores, method.score_texts(tiny_encoder.network, support, flat))  # whatever came before

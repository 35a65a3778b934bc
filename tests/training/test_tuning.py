"""Only words that occur learn, and they learn as they would in the whole table."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from dmin.encoder import Encoder
from dmin.training.tuning import SeenEmbedding, seen_words_learn

TEXTS = ["where is my parcel", "the song is fine", "a parcel is late"]


def learn(network: nn.Module, rows: list[list[int]], steps: int = 5) -> None:
    """A few updates of AdamW without decay, dropout off."""
    optimizer = torch.optim.AdamW([w for w in network.parameters() if w.requires_grad], lr=1e-2, weight_decay=0.0)
    goal = torch.randn(len(rows), 24, generator=torch.Generator().manual_seed(0))
    for _ in range(steps):
        loss = ((network.eval()(rows) - goal) ** 2).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def test_the_same_weights_as_with_the_whole_table(tiny_encoder: Encoder) -> None:
    rows = tiny_encoder.tokenize(TEXTS)
    plain, cut = copy.deepcopy(tiny_encoder.network), tiny_encoder.network
    learn(plain, rows)
    before = cut.backbone.get_input_embeddings().weight.detach().clone()
    with seen_words_learn(cut, rows):
        table = cut.backbone.get_input_embeddings()
        assert isinstance(table, SeenEmbedding) and len(table.weight) < 20
        learn(cut, rows)
    after = cut.backbone.get_input_embeddings().weight
    for (name, one), (_, two) in zip(plain.named_parameters(), cut.named_parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-6), name
    seen = torch.unique(torch.tensor([word for row in rows for word in row]))
    unseen = torch.ones(len(after), dtype=torch.bool)
    unseen[seen] = False
    assert torch.equal(after[unseen], before[unseen]) and not torch.allclose(after[seen], before[seen], atol=1e-3)


def test_other_texts_can_be_encoded_meanwhile(tiny_encoder: Encoder) -> None:
    expected = tiny_encoder.encode(["violins and thunder", *TEXTS])
    with seen_words_learn(tiny_encoder.network, tiny_encoder.tokenize(TEXTS)):
        found = tiny_encoder.encode(["violins and thunder", *TEXTS])
    assert (found == expected).all()


def test_the_table_comes_back_after_an_error(tiny_encoder: Encoder) -> None:
    table = tiny_encoder.network.backbone.get_input_embeddings()
    with pytest.raises(KeyError), seen_words_learn(tiny_encoder.network, tiny_encoder.tokenize(TEXTS)):
        raise KeyError("stop")
    assert tiny_encoder.network.backbone.get_input_embeddings() is table


def test_a_frozen_table_is_left_as_it_is(tiny_encoder: Encoder) -> None:
    table = tiny_encoder.network.backbone.get_input_embeddings()
    table.weight.requires_grad_(False)
    with seen_words_learn(tiny_encoder.network, [[1, 2]]):
        assert tiny_encoder.network.backbone.get_input_embeddings() is table
    with seen_words_learn(None, [[1, 2]]):
        pass

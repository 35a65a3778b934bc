"""The row that costs nothing."""

from __future__ import annotations

import os

import pytest
import torch

from dmin.data import load_corpus
from dmin.encoder import Encoder
from dmin.evaluation import MethodScorer, run_episodes
from dmin.evaluation.protocol import draw_episodes
from dmin.methods import Nearest
from dmin.training.sources import TextSource


def test_is_the_cosine_to_the_sum_of_normalised_examples() -> None:
    support, query = torch.tensor([[[3.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0], [-5.0, 0.0]]]), torch.tensor([[1.0, 1.0]])
    expected = torch.tensor([[1.0, -(0.5**0.5)]])
    assert torch.allclose(Nearest()(support, query), expected, atol=1e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_contributions_add_up(masked: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    support, query = torch.randn(3, 4, 8, generator=generator), torch.randn(5, 8, generator=generator)
    mask = torch.tensor([[True] * 4, [True, False, False, False], [True, True, False, False]]) if masked else None
    shares = Nearest().contributions(support, query, mask)
    assert torch.allclose(shares.sum(-1), Nearest()(support, query, mask), atol=1e-6)


def accuracy(data: str, encoder: Encoder, way: int, shot: int, count: int) -> float:
    corpus = load_corpus(data)
    episodes = draw_episodes(corpus, corpus.split().test, way, shot, 10, count)
    rows = {row for episode in episodes for group in (*episode.support, *episode.query) for row in group}
    table = TextSource(corpus.texts, rows, encoder, frozen=True).snapshot(rows)
    return run_episodes(MethodScorer(Nearest(), table), episodes).interval.mean


def test_starter_is_neither_trivial_nor_hopeless(embedded_encoder: Encoder) -> None:
    assert 0.4 < accuracy("starter", embedded_encoder, 5, 1, 100) < 0.97


@pytest.mark.skipif(not os.environ.get("DMIN_DATA"), reason="DMIN_DATA is not set: banking77 is not here")
def test_known_number_on_banking77(embedded_encoder: Encoder) -> None:
    """84.5 % in an independent trial on 300 other episodes; 60 episodes are within 5 points of it."""
    assert abs(accuracy("banking77", embedded_encoder, 5, 1, 60) - 0.845) < 0.05

"""Matching Networks."""

from __future__ import annotations

import torch

from dmin.methods import Matching
from dmin.methods.base import cosine
from tests.methods.common import random

SUPPORT, QUERY = random(4, 3, 24), random(6, 24, seed=1)
PLAIN = Matching(24, project=False).double()


def test_one_shot_is_a_softmax_of_cosines() -> None:
    support = SUPPORT[:, :1]
    expected = (10 * cosine(QUERY.unsqueeze(1), support[:, 0])).log_softmax(dim=-1)
    assert torch.allclose(PLAIN(support, QUERY), expected, atol=1e-9)


def test_probabilities_sum_to_one_and_only_directions_count() -> None:
    scores = PLAIN(SUPPORT, QUERY)
    assert torch.allclose(scores.exp().sum(dim=-1), torch.ones(6, dtype=torch.float64))
    assert torch.allclose(PLAIN(4 * SUPPORT, 0.3 * QUERY), scores, atol=1e-9)


def test_a_softmax_over_examples_not_over_classes() -> None:
    """Two examples near the query beat one: the class's probability is a sum."""
    support = torch.zeros(2, 2, 24, dtype=torch.float64)
    support[0, :, 0], support[1, 0, 0], support[1, 1, 1] = 1.0, 1.0, 1.0
    query = torch.zeros(1, 24, dtype=torch.float64)
    query[0, 0] = 1.0
    probabilities = PLAIN(support, query).exp()[0]
    assert probabilities[0] > 1.9 * probabilities[1]


def test_loss_is_the_mean_negative_log_probability() -> None:
    labels = torch.tensor([0, 1, 2, 3, 0, 1])
    scores = PLAIN(SUPPORT, QUERY)
    assert torch.allclose(PLAIN.loss(scores, labels), -scores[torch.arange(6), labels].mean())

"""Logistic regression on support vectors."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from dmin.methods import Logistic
from tests.methods.common import World, random


def test_equals_scikit_learn() -> None:
    support, query = random(4, 3, 24), random(6, 24, seed=1)
    rows = torch.nn.functional.normalize(support, dim=-1).reshape(-1, 24).numpy()
    model = LogisticRegression(C=10.0, max_iter=2000, tol=1e-6).fit(rows, np.repeat(np.arange(4), 3))
    expected = model.decision_function(torch.nn.functional.normalize(query, dim=-1).numpy())
    assert np.allclose(Logistic()(support, query).numpy(), expected, atol=1e-8)


def test_two_classes_have_two_columns() -> None:
    scores = Logistic()(random(2, 3, 24), random(6, 24, seed=1))
    assert scores.shape == (6, 2) and torch.allclose(scores[:, 0], -scores[:, 1])


def test_it_learns_from_the_support_alone() -> None:
    world = World(shot=3)
    world.noise[6:] = 0.1
    assert world.accuracy(Logistic()) > 0.9

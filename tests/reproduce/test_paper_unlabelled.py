"""Rows of the paper's table that see the queries of an episode as unlabelled texts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dmin.adaptive.unlabelled import softmax
from dmin.data import Episode
from dmin.evaluation.protocol import MethodScorer
from dmin.methods import create
from dmin.training.sources import VectorTable
from reproduce import paper_unlabelled
from reproduce.paper_plan import cells
from reproduce.paper_unlabelled import SURE, GraphScorer, equally_sure, with_graph


@pytest.fixture
def scorer() -> MethodScorer:
    """Two classes on arcs of a circle; the only example of each lies at the end of its arc."""
    angles = np.concatenate([[0.0], np.linspace(0.1, 1.6, 12), [3.0], np.linspace(2.9, 1.9, 12)])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)  # [26, 2]
    method = create("nearest", 2, way=2, shot=1)
    return MethodScorer(method, VectorTable(26, range(26), torch.from_numpy(vectors)))


EPISODE = Episode(("low", "high"), ((0,), (13,)), (tuple(range(1, 13)), tuple(range(14, 26))))


def test_neighbours_mend_what_a_method_gets_wrong(scorer: MethodScorer) -> None:
    labels = torch.tensor(EPISODE.query_labels)
    alone = (scorer(EPISODE).argmax(dim=1) == labels).float().mean()
    found = GraphScorer(scorer)(EPISODE)
    assert found.shape == (24, 2) and torch.allclose(found.sum(dim=1), torch.ones(24), atol=1e-5)
    assert (found.argmax(dim=1) == labels).float().mean() == 1 > alone


def test_the_range_of_a_methods_scores_makes_no_difference(scorer: MethodScorer) -> None:
    scores = np.random.default_rng(0).normal(size=(50, 5))
    for factor in (0.05, 1.0, 20.0):
        scale = equally_sure(factor * scores)
        assert softmax(scale * factor * scores).max(axis=1).mean() == pytest.approx(SURE, abs=1e-6)
        assert scale * factor == pytest.approx(equally_sure(scores), rel=1e-5)


def test_a_cells_key_follows_the_code_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = next(plan.prepared for plan in cells() if plan.row.name == "nearest")
    before = with_graph(plain).key
    assert before != plain.key and with_graph(plain).key == before
    monkeypatch.setattr(paper_unlabelled, "module_digest", lambda module: f"other {module}")
    assert with_graph(plain).key not in (before, plain.key)

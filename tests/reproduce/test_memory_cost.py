"""What DMM costs new classes: the measure, and its page from raw answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from matplotlib.image import imread
from scipy import stats
from torch import Tensor

from dmin.data import Episode
from dmin.evaluation.protocol import MethodScorer
from dmin.methods import DMIN, create
from dmin.training.sources import VectorTable
from reproduce.memory_cost import (
    COLUMNS,
    FOLDER,
    HiddenRowsScorer,
    PrototypeScorer,
    gains,
    page,
    picture,
    rank_correlation,
    read,
    summary,
)
from reproduce.paper_plan import EPISODES, SETS

EPISODE = Episode(classes=("a", "b"), support=((0, 1), (2, 3)), query=((4, 5), (6, 7)))


def rows_of(vectors: Tensor) -> Mapping[int, Tensor]:
    return dict(enumerate(vectors))


def test_scores_are_those_of_the_nearest_prototype() -> None:
    vectors = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    scores = PrototypeScorer(rows_of(vectors), rows_of(vectors))(EPISODE)
    nearest = create("nearest", 16, way=2, shot=2)
    expected = nearest(vectors[:4].reshape(2, 2, 16), vectors[4:])
    torch.testing.assert_close(scores / scores.norm(), expected / expected.norm())


def test_examples_and_queries_may_come_from_different_spaces() -> None:
    vectors = torch.randn(8, 16, generator=torch.Generator().manual_seed(1))
    turned = torch.linalg.qr(torch.randn(16, 16, generator=torch.Generator().manual_seed(2))).Q
    raw, moved = rows_of(vectors), rows_of(vectors @ turned)
    both = PrototypeScorer(moved, moved)(EPISODE)
    torch.testing.assert_close(both, PrototypeScorer(raw, raw)(EPISODE))  # cosines do not see a rotation of both
    assert (PrototypeScorer(moved, raw)(EPISODE) - both).abs().max() > 0.1


def test_rows_of_an_episodes_own_classes_can_be_hidden_from_dmm() -> None:
    vectors = torch.randn(8, 16, generator=torch.Generator().manual_seed(3))
    method = DMIN(torch.randn(5, 16, generator=torch.Generator().manual_seed(4))).eval()  # W_base of five rows
    texts = VectorTable(8, range(8), vectors)
    scores = HiddenRowsScorer(method, texts, {"a": 1, "b": 3})(EPISODE)
    kept = DMIN(method.base_memory[[0, 2, 4]].detach()).eval()  # as if they had never been there
    kept.load_state_dict({**method.state_dict(), "base_memory": method.base_memory[[0, 2, 4]].detach()})
    torch.testing.assert_close(scores, MethodScorer(kept, texts)(EPISODE))
    assert (scores - MethodScorer(method, texts)(EPISODE)).abs().max() > 1e-3
    assert not method.training and not method.mask_own_rows  # as it was


def test_the_rank_correlation_has_the_p_of_all_orders() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 40]) == (pytest.approx(1), pytest.approx(2 / 24))
    one, other = [1, 2, 2, 5, 7], [3, 1, 4, 4, 9]
    correlation, p = rank_correlation(one, other)
    assert correlation == pytest.approx(stats.spearmanr(one, other).statistic) and 0.05 < p < 0.3


def test_the_committed_page_is_what_the_raw_answers_give() -> None:
    assert (FOLDER / "memory-cost.md").read_text(encoding="utf-8") == page()
    front = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"<!-- memory -->\n{summary()}\n<!-- end of memory -->" in front
    there = read()
    assert list(there) == list(SETS) and all(set(columns) == set(COLUMNS) for columns in there.values())
    assert {len(counts) for columns in there.values() for counts in columns.values()} == {EPISODES}


def test_the_picture_has_a_point_of_each_kind_for_every_set(tmp_path: Path) -> None:
    found = gains()
    assert list(found) == ["trained", "held", "new"] and all(list(points) == list(SETS) for points in found.values())
    assert found["new"]["stackoverflow"].mean < -5 < 5 < found["trained"]["stackoverflow"].mean
    picture(tmp_path / "one.png")
    assert imread(tmp_path / "one.png").std() > 0.05

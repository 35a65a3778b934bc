"""What DMM costs new classes: the measure, and its page from raw answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from matplotlib.image import imread
from torch import Tensor

from dmin.data import Episode
from dmin.methods import create
from reproduce.memory_cost import COLUMNS, FOLDER, PrototypeScorer, gains, page, picture, read, summary
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

"""Every method sees the same stored episodes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dmin.data import Episode
from dmin.errors import DataError
from dmin.evaluation import Cell, EpisodeResults, MethodScorer, run_episodes
from dmin.evaluation.protocol import draw_episodes
from dmin.methods import create
from dmin.training.sources import VectorTable
from tests.conftest import word_corpus

CORPUS = word_corpus()


def constant(episode: Episode) -> torch.Tensor:
    return torch.zeros(len(episode.query_rows), len(episode.classes))


def perfect(episode: Episode) -> torch.Tensor:
    return torch.nn.functional.one_hot(torch.tensor(episode.query_labels), len(episode.classes)).float()


def test_a_constant_answer_is_chance_and_a_perfect_one_is_all() -> None:
    episodes = draw_episodes(CORPUS, CORPUS.classes, 5, 1, 4, 200)
    chance = run_episodes(constant, episodes)
    assert chance.interval.mean == pytest.approx(0.2)
    rates = [rate for rate, _ in chance.per_class().values()]
    assert max(rates) < 0.4  # no class is favoured by the order
    best = run_episodes(perfect, episodes)
    assert best.interval.mean == 1.0 and set(best.per_class()) == set(CORPUS.classes)


def test_confusion_counts_every_query() -> None:
    episodes = draw_episodes(CORPUS, CORPUS.classes, 3, 1, 4, 10)
    results = run_episodes(constant, episodes)
    assert sum(results.confusion.values()) == 10 * 3 * 4
    assert all(answer in CORPUS.classes for _, answer in results.confusion)


def test_vector_scorer_uses_the_table() -> None:
    table = torch.randn(len(CORPUS.texts), 6, generator=torch.Generator().manual_seed(0))
    method = create("nearest", 6, way=3, shot=2)
    episode = draw_episodes(CORPUS, CORPUS.classes, 3, 2, 2, 1).episodes[0]
    expected = method(table[torch.tensor(episode.support)], table[torch.tensor(episode.query_rows)])
    assert torch.equal(MethodScorer(method, VectorTable(len(table), range(len(table)), table))(episode), expected)


def test_stored_episodes_are_reused_and_guarded(tmp_path: Path) -> None:
    path = tmp_path / "episodes.json"
    first = draw_episodes(CORPUS, CORPUS.classes, 3, 1, 4, 5, path)
    assert draw_episodes(CORPUS, CORPUS.classes, 3, 1, 4, 5, path) == first
    with pytest.raises(DataError, match="other episodes"):
        draw_episodes(CORPUS, CORPUS.classes, 3, 2, 4, 5, path)
    with pytest.raises(DataError, match="other texts"):
        draw_episodes(word_corpus(texts=17), CORPUS.classes, 3, 1, 4, 5, path)


def test_a_score_that_is_no_number_is_an_error() -> None:
    episodes = draw_episodes(CORPUS, CORPUS.classes, 3, 1, 4, 1)
    with pytest.raises(DataError, match="NaN or infinite"):
        run_episodes(lambda episode: constant(episode) / 0, episodes)


def test_a_cell_as_it_stands_in_the_summary() -> None:
    cell = Cell("dmin", 5, 1, EpisodeResults([0.5, 0.7]))
    found = cell.as_dict()
    assert found["accuracy"] == pytest.approx(0.6) and found["episodes"] == 2
    assert set(found) == {"method", "way", "shot", "episodes", "accuracy", "ci95"}

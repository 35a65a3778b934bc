"""Episodes: disjoint, seeded, stored."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmin.data import Corpus, EpisodeList, EpisodeSampler
from dmin.errors import DataError
from tests.conftest import word_corpus

CORPUS = word_corpus()


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 9), st.integers(1, 6), st.integers(1, 10), st.integers(0, 99), st.integers(0, 10_000))
def test_an_episode_is_what_it_should_be(way: int, shot: int, queries: int, seed: int, number: int) -> None:
    episode = EpisodeSampler(CORPUS, CORPUS.classes, way, shot, queries, seed).episode(number)
    assert len(set(episode.classes)) == way
    for name, support, query in zip(episode.classes, episode.support, episode.query, strict=True):
        assert len(support) == shot and len(query) == queries
        assert len({*support, *query}) == shot + queries
        assert {CORPUS.labels[row] for row in (*support, *query)} == {name}
    assert len(episode.query_rows) == len(episode.query_labels) == way * queries
    for row, label in zip(episode.query_rows, episode.query_labels, strict=True):
        assert CORPUS.labels[row] == episode.classes[label]


def test_the_seed_and_the_number_alone_decide() -> None:
    sampler = EpisodeSampler(CORPUS, CORPUS.classes, 5, 2, 3, seed=1)
    np.random.seed(0)
    random.seed(0)
    before = np.random.get_state()[1].copy(), random.getstate()  # type: ignore[index]
    first = sampler.episode(7)
    sampler.episode(8)
    assert sampler.episode(7) == first == EpisodeSampler(CORPUS, CORPUS.classes, 5, 2, 3, seed=1).episode(7)
    assert first != sampler.episode(8)
    assert first != EpisodeSampler(CORPUS, CORPUS.classes, 5, 2, 3, seed=2).episode(7)
    assert np.array_equal(before[0], np.random.get_state()[1]) and before[1] == random.getstate()  # type: ignore[index]


def test_class_order_is_random_so_that_a_constant_answer_is_chance() -> None:
    sampler = EpisodeSampler(CORPUS, CORPUS.classes, 3, 1, 1)
    firsts = [sampler.episode(number).classes[0] for number in range(900)]
    counts = [firsts.count(name) for name in CORPUS.classes]
    assert min(counts) > 60 and max(counts) < 145  # 100 expected


def test_a_stored_list_comes_back_and_is_guarded(tmp_path: Path) -> None:
    path = tmp_path / "episodes.json"
    episodes = EpisodeSampler(CORPUS, CORPUS.classes, 3, 2, 4, seed=5).take(6)
    episodes.save(path)
    loaded = EpisodeList.load(path, CORPUS)
    assert loaded == episodes and loaded.hash == episodes.hash and len(loaded) == 6
    with pytest.raises(DataError, match="belongs to other texts"):
        EpisodeList.load(path, word_corpus(texts=17))
    content = json.loads(path.read_text())
    content["episodes"][0]["support"][0][0] += 1
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="was changed"):
        EpisodeList.load(path, CORPUS)
    path.write_text('{"hash": "x"}')
    with pytest.raises(DataError, match="not a list of episodes"):
        EpisodeList.load(path, CORPUS)


def test_small_classes_are_left_out_and_named() -> None:
    corpus = Corpus.from_mapping({"a": ["1", "2", "3"], "b": ["4", "5", "6"], "tiny": ["7"]})
    sampler = EpisodeSampler(corpus, corpus.classes, 2, 1, 2)
    assert sampler.left_out == ["tiny"]
    with pytest.raises(DataError, match=r"3-way episodes need 3 classes, but there are 2; left out.*: tiny .*lower"):
        EpisodeSampler(corpus, corpus.classes, 3, 1, 2)
    with pytest.raises(DataError, match="at least 1"):
        EpisodeSampler(corpus, corpus.classes, 2, 0, 2)

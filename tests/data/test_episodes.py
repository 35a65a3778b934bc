"""Episodes: disjoint, seeded, stored, of fixed and of varied shape."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmin.data import Corpus, EpisodeList, EpisodeSampler, VariedSampler, join_corpora
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


def numbered_corpus(name: str, classes: int) -> Corpus:
    pairs = [(f"{name} {c} {n}", f"c{c}") for c in range(classes) for n in range(8)]
    return Corpus(name, tuple(text for text, _ in pairs), tuple(label for _, label in pairs))


def test_shapes_vary_and_sets_do_not_mix() -> None:
    both = join_corpora([numbered_corpus("one", 6), numbered_corpus("two", 9)])
    sampler = VariedSampler(both, both.classes, (3, 8), (1, 5), 2, seed=4)
    episodes = [sampler.episode(number) for number in range(60)]
    assert {len(episode.classes) for episode in episodes} == {3, 4, 5, 6, 7, 8}
    assert {len(episode.support[0]) for episode in episodes} == {1, 5}
    sets = [{both.origin[label] for label in episode.classes} for episode in episodes]
    assert all(len(found) == 1 for found in sets) and {name for found in sets for name in found} == {"one", "two"}
    assert max(len(e.classes) for e, s in zip(episodes, sets, strict=True) if s == {"one"}) <= 6
    assert sampler.episode(17) == episodes[17]  # whatever was drawn in between


def test_a_batch_has_one_shape() -> None:
    one = numbered_corpus("one", 9)
    sampler = VariedSampler(one, one.classes, (2, 9), (1, 2, 3), 2, seed=0, batch=4)
    for start in range(0, 40, 4):
        shapes = {(len(e.classes), len(e.support[0])) for e in map(sampler.episode, range(start, start + 4))}
        assert len(shapes) == 1


def test_too_few_classes_are_said() -> None:
    one = numbered_corpus("one", 4)
    with pytest.raises(DataError, match="5-way episodes need 5 classes"):
        VariedSampler(one, one.classes, (5, 9), (1,), 2, seed=0)
    with pytest.raises(DataError, match=r"fewer than 7 \+ 2 texts"):
        VariedSampler(one, one.classes, (2, 4), (1, 7), 2, seed=0)

"""Training episodes of varied shape."""

from __future__ import annotations

import pytest

from dmin.data import Corpus, VariedSampler, join_corpora
from dmin.errors import DataError


def corpus(name: str, classes: int) -> Corpus:
    pairs = [(f"{name} {c} {n}", f"c{c}") for c in range(classes) for n in range(8)]
    return Corpus(name, tuple(text for text, _ in pairs), tuple(label for _, label in pairs))


def test_shapes_vary_and_sets_do_not_mix() -> None:
    both = join_corpora([corpus("one", 6), corpus("two", 9)])
    sampler = VariedSampler(both, both.classes, (3, 8), (1, 5), 2, seed=4)
    episodes = [sampler.episode(number) for number in range(60)]
    assert {len(episode.classes) for episode in episodes} == {3, 4, 5, 6, 7, 8}
    assert {len(episode.support[0]) for episode in episodes} == {1, 5}
    sets = [{both.origin[label] for label in episode.classes} for episode in episodes]
    assert all(len(found) == 1 for found in sets) and {name for found in sets for name in found} == {"one", "two"}
    assert max(len(e.classes) for e, s in zip(episodes, sets, strict=True) if s == {"one"}) <= 6
    assert sampler.episode(17) == episodes[17]  # whatever was drawn in between


def test_a_batch_has_one_shape() -> None:
    one = corpus("one", 9)
    sampler = VariedSampler(one, one.classes, (2, 9), (1, 2, 3), 2, seed=0, batch=4)
    for start in range(0, 40, 4):
        shapes = {(len(e.classes), len(e.support[0])) for e in map(sampler.episode, range(start, start + 4))}
        assert len(shapes) == 1


def test_too_few_classes_are_said() -> None:
    one = corpus("one", 4)
    with pytest.raises(DataError, match="5-way episodes need 5 classes"):
        VariedSampler(one, one.classes, (5, 9), (1,), 2, seed=0)
    with pytest.raises(DataError, match=r"fewer than 7 \+ 2 texts"):
        VariedSampler(one, one.classes, (2, 4), (1, 7), 2, seed=0)

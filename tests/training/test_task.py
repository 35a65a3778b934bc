"""What a run starts from: classes, held-out texts and episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dmin.data import Corpus, seeded_split
from dmin.errors import DataError
from dmin.training import load_config
from dmin.training.task import choose_base, hold_out, prepare_task
from tests.conftest import WORDS
from tests.training.test_train import SMALL, silent


@pytest.fixture
def settings(words_file: Path, tiny_encoder_folder: Path) -> dict[str, Any]:
    return {**SMALL, "data": str(words_file), "encoder": str(tiny_encoder_folder)}


def test_hold_out_divides_each_class() -> None:
    corpus = Corpus.from_mapping({"a": [f"a{n}" for n in range(20)], "b": ["b0"], "c": ["c0", "c1"]})
    divided = hold_out(corpus, ["a", "b", "c"], 0.1, seed=1)
    both = divided.train + divided.held_out
    assert sorted(row for row, _ in both) == list(range(23))
    assert [number for _, number in divided.held_out] == [0, 0, 2]
    assert all(corpus.labels[row] == "abc"[number] for row, number in both)
    assert hold_out(corpus, ["a", "b", "c"], 0.1, seed=1) == divided != hold_out(corpus, ["a", "b", "c"], 0.1, seed=2)
    assert hold_out(corpus, ["a"], 0.0, seed=1).held_out == ()


def test_held_out_texts_stay_out_of_the_episodes_too(settings: dict[str, Any]) -> None:
    wanted = {**settings, "stage1.held_out": 0.2, "stage2.hold_out": True}
    config = load_config(overrides=wanted)
    task = prepare_task(config, silent)
    held = {row for row, _ in task.base_texts.held_out}
    assert task.base_texts == hold_out(task.corpus, task.base_classes, 0.2, config.seed)

    def drawn(sampler: Any) -> set[int]:
        episodes = [sampler.episode(number) for number in range(60)]
        return {row for episode in episodes for rows in (*episode.support, *episode.query) for row in rows}

    assert held and not held & drawn(task.sampler)
    usual = prepare_task(load_config(overrides={**wanted, "stage2.hold_out": False}), silent)
    assert held & drawn(usual.sampler)
    assert task.corpus.fingerprint == task.sampler.corpus.fingerprint


def test_base_and_episode_classes(settings: dict[str, Any]) -> None:
    task = prepare_task(load_config(overrides={**settings, "base_classes": 2}), silent)
    assert len(task.base_classes) == 2 and set(task.base_classes) < set(task.split.train)
    assert len(task.sampler.classes) == 5
    apart = {**settings, "base_classes": 2, "episode_classes": "without-base"}
    drawn = prepare_task(load_config(overrides=apart), silent).sampler.classes
    assert len(drawn) == 3 and not set(drawn) & set(task.base_classes)
    named = load_config(overrides={**settings, "base_classes": list(task.split.train[:2])})
    assert choose_base(named, task.split) == task.split.train[:2]


def test_small_classes_and_narrow_validation_are_said(settings: dict[str, Any], words_file: Path) -> None:
    notes: list[str] = []
    sizes = (6, 2, 1)
    seed = next(seed for seed in range(99) if "apple" in seeded_split(list(WORDS), seed, sizes).train)
    lines = words_file.read_text().splitlines()
    small = [line for line in lines if line.endswith(",apple")][4:]
    words_file.write_text("\n".join(line for line in lines if line not in small) + "\n")
    prepare_task(load_config(overrides={**settings, "split_seed": seed, "split_sizes": sizes}), notes.append)
    assert any("validating 2-way instead of 3-way" in note for note in notes)
    assert any("1 training classes have fewer than 2 + 4 texts and are left out" in note for note in notes)
    assert any("apple" in note for note in notes)


def test_columns_of_other_names_are_given_by_settings(settings: dict[str, Any], words_file: Path) -> None:
    words_file.write_text(words_file.read_text().replace("text,label", "said,kind", 1))
    with pytest.raises(DataError, match="said, kind"):
        prepare_task(load_config(overrides=settings), silent)
    renamed = {**settings, "text_column": "said", "label_column": "kind"}
    assert prepare_task(load_config(overrides=renamed), silent).corpus.name == "words"

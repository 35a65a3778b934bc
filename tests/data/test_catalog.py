"""Data sets by name."""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path

import pytest

from dmin.data import choose_split, load_corpus
from dmin.errors import DataError, UnknownNameError
from tests.conftest import word_corpus


def test_starter_has_what_it_promises() -> None:
    corpus = load_corpus("starter")
    split = corpus.split()
    assert len(corpus.classes) >= 66
    assert min(len(rows) for rows in corpus.by_class.values()) >= 20
    assert (len(split.train), len(split.valid), len(split.test)) == (40, 12, 14)
    assert len(set(corpus.texts)) == len(corpus.texts)


def test_no_two_starter_texts_share_more_than_four_fifths_of_their_words() -> None:
    words = [frozenset(re.findall(r"[a-z0-9']+", text.lower())) for text in load_corpus("starter").texts]
    worst = max(len(one & two) / min(len(one), len(two)) for one, two in itertools.combinations(words, 2))
    assert worst <= 0.8


def test_named_sets_are_found_under_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "hwu64"
    folder.mkdir()
    lines = [{"text": f"text {n}", "label": f"c{n % 4}", "part": "train"} for n in range(12)]
    (folder / "texts.jsonl").write_text("\n".join(map(json.dumps, lines)))
    splits = {"protaugment-01": {"train": ["c0", "c1"], "valid": ["c2"], "test": ["c3"]}}
    (folder / "class_splits.json").write_text(json.dumps(splits))
    monkeypatch.setenv("DMIN_DATA", str(tmp_path))
    corpus = load_corpus("hwu64")
    assert corpus.name == "hwu64" and corpus.split().test == ("c3",)
    assert load_corpus(str(folder)).split("protaugment-01").valid == ("c2",)


def test_a_set_that_is_not_here_says_where_to_put_it(monkeypatch: pytest.MonkeyPatch, no_hub: None) -> None:
    monkeypatch.delenv("DMIN_DATA", raising=False)
    with pytest.raises(DataError, match="DMIN_DATA/hwu64"):
        load_corpus("hwu64")
    with pytest.raises(DataError, match="banking77 is not here and the Hugging Face hub cannot be reached"):
        load_corpus("banking77")
    with pytest.raises(DataError, match="someone/something is not here"):
        load_corpus("someone/something")


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'banking77'"):
        load_corpus("bankin77")
    with pytest.raises(DataError, match="no such file"):
        load_corpus(str(tmp_path / "x.csv"))
    with pytest.raises(DataError, match="not a labelled file"):
        load_corpus(str(tmp_path))


def test_choose_split() -> None:
    corpus = word_corpus()
    assert choose_split(corpus)[0] == "seed-0"
    assert choose_split(corpus, seed=4, sizes=(3, 3, 3))[0] == "seed-4-3-3-3"
    assert choose_split(load_corpus("starter"))[0] == "novel14"
    with pytest.raises(DataError, match="not both"):
        choose_split(corpus, "name", seed=1)


@pytest.mark.skipif(not os.environ.get("DMIN_DATA"), reason="DMIN_DATA is not set: the public sets are not here")
@pytest.mark.parametrize("name", ["banking77", "clinc150", "hwu64", "liu54"])
def test_the_public_sets_load_with_their_splits(name: str) -> None:
    corpus = load_corpus(name)
    assert len(corpus.texts) > 10_000
    for split in (split for name, split in corpus.splits.items() if not name.startswith("fair")):
        assert min(len(split.train), len(split.valid), len(split.test)) >= 11

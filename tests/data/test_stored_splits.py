"""The class splits that the package has for public sets keep their promises."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

import pytest

from dmin.data import Corpus, load_corpus
from dmin.data.splits import PARTS, STORED_SPLITS, ClassSplit, read_splits, stored_splits
from reproduce.make_splits import SIZES, make, to_json

STORED = {path.stem: read_splits(path) for path in sorted(STORED_SPLITS.glob("*.json"))}


def every_class(splits: dict[str, ClassSplit]) -> set[str]:
    return {label for split in splits.values() for part in PARTS for label in split.part(part)}


def test_nine_sets_have_stored_splits() -> None:
    assert set(STORED) == set(SIZES) and len(STORED) == 9
    assert all(list(splits) == [f"fair-{n:02d}" for n in range(1, len(splits) + 1)] for splits in STORED.values())


@pytest.mark.parametrize("name", STORED)
def test_promises(name: str) -> None:
    splits = STORED[name]
    valid, count, test = SIZES[name]
    assert len(splits) == count >= 3
    classes = every_class(splits)
    for split in splits.values():
        split.check(name, sorted(classes))
        assert len(split.valid) == valid and len(split.test) == test
        assert {*split.train, *split.valid, *split.test} == classes
    pool = set(next(iter(splits.values())).valid)
    assert all(set(split.valid) == pool for split in splits.values())
    assert not pool & {label for split in splits.values() for label in split.test}
    if len(classes) >= 35:
        assert not any(set(one.test) & set(two.test) for one, two in combinations(splits.values(), 2))
    if len(classes) > 20:
        assert test >= 10 and min(len(split.train) for split in splits.values()) > 10


@pytest.mark.parametrize("name", STORED)
def test_the_files_are_what_the_script_makes(name: str) -> None:
    made = make(sorted(every_class(STORED[name])), *SIZES[name])
    assert (STORED_SPLITS / f"{name}.json").read_text(encoding="utf-8") == to_json(made)


@pytest.mark.skipif("DMIN_DATA" not in os.environ, reason="needs the public sets under DMIN_DATA")
@pytest.mark.parametrize("name", STORED)
def test_names_exist_in_the_data(name: str) -> None:
    corpus = load_corpus(name)
    assert every_class(STORED[name]) == set(corpus.classes)
    assert set(corpus.split("fair-01").test) == set(STORED[name]["fair-01"].test)
    assert corpus.default_split is not None and not corpus.default_split.startswith("fair")


def test_a_named_set_has_them_beside_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by name; a set whose classes have other names goes without them."""
    folder = tmp_path / "news20"
    folder.mkdir()
    monkeypatch.setenv("DMIN_DATA", str(tmp_path))
    (folder / "class_splits.json").write_text('{"mine": {"train": ["sci.med"], "valid": [], "test": ["sci.space"]}}')
    lines = [f'{{"text": "about {label}", "label": "{label}"}}' for label in sorted(every_class(STORED["news20"]))]
    (folder / "texts.jsonl").write_text("\n".join(lines) + "\n")
    corpus = load_corpus("news20")
    assert list(corpus.splits) == ["mine", "fair-01", "fair-02", "fair-03"] and corpus.default_split == "mine"
    (folder / "texts.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    (folder / "class_splits.json").unlink()
    assert dict(load_corpus("news20").splits) == {}
    assert stored_splits("no-such-set", Corpus.from_mapping({"a": ["b"]}).classes) == {}

"""Names that come from files do not lead anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmin.cli.app import run
from dmin.files import safe_name
from tests.conftest import WORDS
from tests.training.runs import SETTINGS


@pytest.mark.parametrize(
    "name", ["banking77", "a b", "banking77+clinc150", "seed-1-5-2-2", "größe", "x.y", "v1.0-5way"]
)
def test_plain_names_stay(name: str) -> None:
    assert safe_name(name) == name


@given(st.text(st.characters(), max_size=300))
def test_any_name_is_one_part_of_a_path(name: str) -> None:
    found = safe_name(name)
    assert Path("folder", found).parent == Path("folder") and Path("folder", found).name == found
    assert found not in ("", ".", "..") and not found.startswith(".") and "\\" not in found
    assert len(found.encode()) <= 200  # (a lone surrogate would not encode)
    assert safe_name(found) == found


@given(st.lists(st.text(st.characters(), max_size=40), unique=True, max_size=20))
def test_different_names_stay_different(names: list[str]) -> None:
    assert len({safe_name(name) for name in names}) == len(names)


@pytest.mark.parametrize("name", ["con", "NUL.txt", "a/b", "..", "../../x", "C:\\x", "x" * 400, "a\x00b", "\ud800"])
def test_others_carry_a_digest(name: str) -> None:
    assert safe_name(name) != name and safe_name(name) != safe_name(name + "x")


@pytest.mark.parametrize("split", ["../../../outside", "/outside-of-dmin", "a/../../b"])
def test_a_split_cannot_write_outside_of_the_run(tiny_encoder_folder: Path, tmp_path: Path, split: str) -> None:
    data = tmp_path / "data" / "words"
    data.mkdir(parents=True)
    lines = [
        {"text": f"{word} {number}", "label": label}
        for label, words in WORDS.items()
        for number, word in enumerate(words.split() * 2)
    ]
    (data / "texts.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    names = list(WORDS)
    (data / "class_splits.json").write_text(
        json.dumps({split: {"train": names[:5], "valid": names[5:7], "test": names[7:]}})
    )
    (tmp_path / "deep" / "er").mkdir(parents=True)
    before = set(tmp_path.rglob("*"))
    out = tmp_path / "deep" / "er" / "run"
    settings = SETTINGS.replace("--split-seed 1 --split-sizes 5/2/2", "").replace("test_episodes=0", "test_episodes=2")
    arguments = ["train", "--data", str(data), "--encoder", str(tiny_encoder_folder), "--out", str(out)]
    assert run([*arguments, *settings.split(), "--split", split, "--way", "2", "--episodes", "4"]) == 0
    made = set(tmp_path.rglob("*")) - before
    assert made and all(path == out or out in path.parents for path in made)
    assert len(list((out / "episodes").iterdir())) == 1
    assert not Path("/outside-of-dmin").exists()

"""A run opened again: the same texts, classes and columns as in training, whatever command asks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from dmin.cli.app import run
from dmin.data import EpisodeList, seeded_split
from dmin.errors import DminError
from dmin.evaluation.runs import open_run
from dmin.training import load_config
from dmin.training.task import open_corpus
from tests.conftest import WORDS
from tests.training.runs import SETTINGS

COMPARE = """
--methods nearest --way 2 --shot 1 --episodes 5 --train-episodes 4 --set queries=4 --set split_seed=1
--set split_sizes=4/2/3 --set stage1.epochs=1 --set stage2.validation_episodes=2 --set device=cpu
"""


@pytest.fixture
def left_out(words_file: Path, tmp_path: Path) -> Path:
    """The first two texts of every class, as a file of their own."""
    lines = words_file.read_text().splitlines()[1:]
    kept = [line for label in WORDS for line in [one for one in lines if one.endswith(f",{label}")][:2]]
    path = tmp_path / "test-set.csv"
    path.write_text("text,label\n" + "\n".join(kept) + "\n")
    return path


def train(data: Path, encoder: Path, out: Path, *more: str) -> None:
    arguments = ["train", "--data", str(data), "--encoder", str(encoder), "--out", str(out)]
    assert run([*arguments, *SETTINGS.split(), "--episodes", "10", *more]) == 0


def texts_of(episodes: EpisodeList, texts: Sequence[str]) -> set[str]:
    return {texts[row] for e in episodes for rows in (*e.support, *e.query) for row in rows}


def test_compare_leaves_out_what_exclude_names(
    words_file: Path, left_out: Path, tiny_encoder_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    encoder = f"encoder={tiny_encoder_folder}"
    arguments = ["compare", "--data", str(words_file), *COMPARE.split(), "--set", encoder, "--out", str(out)]
    assert run([*arguments, "--set", f"exclude={left_out}"]) == 0
    corpus = open_corpus(load_config(overrides={"data": str(words_file), "exclude": str(left_out)}))
    assert len(corpus.texts) == 9 * 14
    stored = EpisodeList.load(next((out / "episodes").iterdir()), corpus)  # (refuses episodes of other texts)
    excluded = {line.split(",")[0] for line in left_out.read_text().splitlines()[1:]}
    assert not excluded & texts_of(stored, corpus.texts)
    # Another file under the same name is other data: its cell is made anew.
    left_out.write_text("\n".join(left_out.read_text().splitlines()[:-1]) + "\n")
    assert run([*arguments[:-1], str(tmp_path / "again"), "--set", f"exclude={left_out}"]) == 0
    names = [next((folder / "cells").iterdir()).name for folder in (out, tmp_path / "again")]
    assert names[0] != names[1]


def test_evaluate_after_train_with_exclude(
    words_file: Path,
    left_out: Path,
    tiny_encoder_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command that `dmin train` prints at its end works, and its episodes hold none of the excluded texts."""
    out = tmp_path / "run"
    train(words_file, tiny_encoder_folder, out, "--exclude", str(left_out), "--set", "test_episodes=5", "--way", "2")
    first = json.loads((out / "summary.json").read_text())
    following = capsys.readouterr().out.rsplit("next: dmin ", 1)[1].split()
    assert following == ["evaluate", str(out)]
    assert run([*following, "--way", "2", "--shot", "2", "--queries", "4", "--episodes", "5"]) == 0
    assert json.loads((out / "summary.json").read_text()) == first
    opened = open_run(out)
    excluded = {line.split(",")[0] for line in left_out.read_text().splitlines()[1:]}
    assert len(opened.corpus.texts) == 9 * 14 and not excluded & set(opened.corpus.texts)
    assert run(["figure", "confusion", str(out), "--way", "2", "--shot", "2", "--episodes", "5"]) == 0


def test_a_drawn_split_is_the_same_in_evaluate_and_figure(
    words_file: Path, tiny_encoder_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    train(words_file, tiny_encoder_folder, out)  # --split-seed 1 --split-sizes 5/2/2
    expected = seeded_split(list(WORDS), 1, (5, 2, 2))
    for name in (out, out / "model"):
        opened = open_run(name)
        assert opened.split == expected and opened.split_name == "seed-1-5-2-2" and opened.folder == out
    settings = ["--way", "2", "--shot", "2", "--episodes", "5"]
    assert run(["evaluate", str(out), "--queries", "4", *settings]) == 0
    confusions = json.loads((out / "per_class.json").read_text())[0]["classes"]
    assert set(confusions) == set(expected.test)
    assert run(["figure", "confusion", str(out), *settings]) == 0
    assert run(["figure", "tsne", str(out), "--way", "2", "--shot", "3"]) == 0


def test_other_splits_of_the_same_data(words_file: Path, tiny_encoder_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(words_file, tiny_encoder_folder, out)
    # Another seed keeps the sizes of the training; sizes alone keep its seed.
    assert open_run(out, split_seed=2).split == seeded_split(list(WORDS), 2, (5, 2, 2))
    assert open_run(out, split_sizes=(3, 3, 3)).split == seeded_split(list(WORDS), 1, (3, 3, 3))
    # A split by name takes the place of the drawn one.
    with pytest.raises(DminError, match="no class split 'mine'"):
        open_run(out, split="mine")


def test_other_data_is_not_touched_by_the_settings_of_the_training(
    words_file: Path, left_out: Path, tiny_encoder_folder: Path, tmp_path: Path
) -> None:
    """Texts that training left out, for example a test set, are what an evaluation on other data is for."""
    out = tmp_path / "run"
    train(words_file, tiny_encoder_folder, out, "--exclude", str(left_out))
    renamed = tmp_path / "other.csv"
    renamed.write_text(left_out.read_text().replace("text,label", "words,kind", 1))
    opened = open_run(out, data=str(renamed), text_column="words", label_column="kind", split_seed=0)
    assert len(opened.corpus.texts) == 18 and not opened.own_data


def test_a_bilstm_is_for_comparisons_only(words_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One rule for every command: it needs tune full, and no model folder can hold it."""
    out = tmp_path / "run"
    arguments = ["train", "--data", str(words_file), "--encoder", "bilstm", "--out", str(out), *SETTINGS.split()]
    assert run([*arguments, "--tune", "full"]) == 2
    assert "encoder bilstm is for dmin compare" in capsys.readouterr().err
    assert run(["ablate", "--set", "encoder=bilstm", "--out", str(out)]) == 2
    assert "use --tune full" in capsys.readouterr().err
    assert not out.exists()

"""What DMM gives new classes by the training classes: the trainings, and the page from raw answers."""

from __future__ import annotations

from pathlib import Path

from matplotlib.image import imread

from dmin.data import Corpus
from dmin.data.splits import ClassSplit
from dmin.evaluation.raw import unpack
from reproduce import paper_ledger
from reproduce.memory_classes import (
    FOLDER,
    SEEDS,
    STUDIED,
    Training,
    limited,
    page,
    picture,
    places,
    read,
    results,
    summary,
    trainings,
)
from reproduce.memory_cost import QUERIES, SHOT, SPLIT, WAY, WHOLE, WITHOUT
from reproduce.paper_plan import EPISODES, splits_of


def test_a_set_is_trained_on_fewer_classes_on_all_and_with_rows_for_half() -> None:
    assert trainings("hwu64") == [
        Training(10, 10), Training(20, 20), Training(39, 39), Training(39, 19), Training(39, 19, "without-base"),
    ]  # fmt: skip
    assert [training.classes for training in trainings("clinc150")] == [10, 20, 40, 100, 100, 100]
    assert [training.whole for training in trainings("banking77")] == [True, True, True, False, False]


def test_fewer_training_classes_leave_the_test_classes_alone() -> None:
    labels = tuple("abcdefgh")
    split = ClassSplit(train=labels[:5], valid=labels[5:6], test=labels[6:])
    corpus = Corpus("one", labels, labels, {SPLIT: split})
    some = {seed: limited(corpus, 3, seed).split(SPLIT) for seed in range(5)}
    assert all(len(one.train) == 3 and set(one.train) < set(split.train) for one in some.values())
    assert all((one.valid, one.test) == (split.valid, split.test) for one in some.values())
    assert len({one.train for one in some.values()}) > 1 and some[0] == limited(corpus, 3, 0).split(SPLIT)
    assert limited(corpus, 5, 0).split(SPLIT) == split


def test_the_committed_page_is_what_the_raw_answers_give() -> None:
    assert (FOLDER / "memory-classes.md").read_text(encoding="utf-8") == page()
    front = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"<!-- classes -->\n{summary()}\n<!-- end of classes -->" in front
    there = read()
    assert list(there) == places()
    assert {len(counts) for right in there.values() for counts in right.values()} == {EPISODES}
    assert {found.seeds for found in results().values()} == {SEEDS}


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    picture(tmp_path / "one.png")
    assert imread(tmp_path / "one.png").std() > 0.05


def test_trainings_on_all_classes_are_cells_of_the_papers_table() -> None:
    """The same training, so the same answers; a last bit on another processor may turn one in ten thousand."""
    there, lines = read(), paper_ledger.read().values()
    ledger = {
        (cell.data, cell.row.name): unpack(cell.right)
        for cell in lines
        if (cell.split, cell.way, cell.shot, cell.seed) == (SPLIT, WAY, SHOT, 0)
    }
    for data in STUDIED:
        total = splits_of(data)[SPLIT][0]
        for row in (WHOLE, WITHOUT):
            found = there[data, Training(total, total), 0][row]
            turned = sum(abs(one - other) for one, other in zip(found, ledger[data, row], strict=True))
            assert turned <= EPISODES * WAY * QUERIES / 10_000

"""What makes the tables of KINDS.md: lines, tables in pages, logistic regression with the graph, the trials."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dmin.adaptive import Recipe, Spread, fit_head, learn_unlabelled, unlabelled
from reproduce import kinds_lines, kinds_tables, kinds_votes
from reproduce.kinds_lines import lines_of, put_table, restart, write
from reproduce.kinds_trials import Memory, Task, with_memory
from reproduce.kinds_unlabelled import logistic_weights, logistic_with_graph, unit


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kinds_lines, "OUT", tmp_path / "runs")
    return tmp_path


def groups(classes: int, per: int, seed: int = 0, width: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm 1 around one centre per class, and their classes."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((classes, width))
    labels = np.repeat(np.arange(classes), per)
    return unit(centres[labels] + 0.8 * random.standard_normal((len(labels), width))).astype(np.float32), labels


def test_a_set_that_is_measured_anew_loses_its_earlier_lines() -> None:
    for name in ("hwu64", "debian"):
        write("cells", {"set": name, "accuracy": 1.0})
    restart("cells", ["hwu64"])
    write("cells", {"set": "hwu64", "accuracy": 2.0})
    assert [(line["set"], line["accuracy"]) for line in lines_of("cells")] == [("debian", 1.0), ("hwu64", 2.0)]


def test_a_table_replaces_only_what_stands_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- cells -->\nold\n<!-- end of cells -->\nafter\n")
    put_table(page, "cells", "| new |")
    put_table(page, "cells", "| newer |")
    assert page.read_text() == "before\n<!-- cells -->\n| newer |\n<!-- end of cells -->\nafter\n"


def test_a_cell_fails_where_the_default_is_significantly_below_the_better_baseline() -> None:
    for draw, noise in enumerate((0.0, 0.1, -0.1, 0.05)):
        for name, default in (("banking77", 79.5), ("hwu64", 80.5)):
            accuracy = {"default": default + noise, "nearest": 70.0, "logistic": 80.0}
            write("cells", {"set": name, "shot": 5, "draw": draw, "names": True, "accuracy": accuracy})
    table = kinds_tables.cells()
    assert "| banking77 | 5 | yes | 70.00 | 80.00 | 79.51 ± 0.14 | -0.49 | 0.001 | fails |" in table
    assert "2 cells, mean difference +0.01 (goal +0.7), smallest -0.49, below -0.3: 1" in table
    assert table.endswith("(failing): 1")


def test_the_unlabelled_table_marks_what_lost_more_than_allowed() -> None:
    for name, after in (("debian", [50.0, 49.9]), ("goemotions", [49.0, 50.5])):
        line = {"set": name, "pile": "even", "per": 10, "before": [50.0, 50.0], "after": after}
        write("unlabelled", line | {"logistic": [48.0, 48.0], "graph": [49.0, 47.0]})
    table = kinds_tables.unlabelled()
    assert "| debian | even | 10 | +0.00 | -0.10 | -0.1 | 49.9 | 47.0 | +1.00 | -1.00 |  |" in table
    assert "| goemotions | even | 10 | -1.00 | +0.50 | -1.0 | 50.5 | 47.0 | +1.00 | -1.00 | below |" in table


def test_the_weights_are_those_of_scikit_learn() -> None:
    rows, labels = groups(4, 5)
    target = np.eye(4, dtype=np.float32)[labels]
    found = logistic_weights(rows, target, np.ones(len(rows), np.float32))
    expected = LogisticRegression(C=10, fit_intercept=False, tol=1e-8, max_iter=2000).fit(rows, labels)
    assert np.allclose(found, expected.coef_, atol=0.02)


def test_the_graph_takes_texts_over_to_their_neighbours_class() -> None:
    rows, labels = groups(5, 41)
    shown = np.arange(len(rows)) % 41 == 0  # one example per class
    found = logistic_with_graph(rows[shown], labels[shown], rows[~shown], rows[~shown])
    before = (found.of_pile_before == labels[~shown]).mean()
    assert (found.of_pile == labels[~shown]).mean() > before
    assert (found.of_new == labels[~shown]).mean() > (found.of_new_before == labels[~shown]).mean() - 0.01


def test_a_memory_that_is_worth_nothing_changes_nothing_and_a_memory_that_is_moves_the_centre() -> None:
    rows, labels = groups(6, 3)
    asked, truth = groups(6, 20, seed=1)
    task = Task(rows.reshape(6, 3, -1), True, asked, truth)
    spread = Spread.estimate([(rows, labels)])
    kept = Memory(rows[:4], np.array([0, 0, 1, 1]), rows[[0, 5]], np.abs(rows[[0, 5]]))
    plain = fit_head(Recipe(), [spread], rows, *task.shape)
    same, moved = (with_memory(Recipe(), spread, task, kept, worth) for worth in ((0, 0), (30, 0)))
    assert np.allclose(same.scores(same.view(asked)), plain.scores(plain.view(asked)), atol=1e-3)
    mean, _ = kept.read(rows)
    far, near = (np.linalg.norm(head.view.sides[0].centre - mean) for head in (plain, moved))
    assert near < 0.5 * far


def test_variants_leave_one_part_out_each() -> None:
    rows, _ = groups(4, 3)
    centres = rows.reshape(4, 3, -1).mean(axis=1)
    random = np.random.default_rng(2)
    labels = np.repeat(np.arange(4), 40)
    texts = unit(centres[labels] + 0.25 * random.standard_normal((160, 12))).astype(np.float32)
    head = fit_head(Recipe(), [Spread.flat(12)], rows, [3] * 4, [False] * 4)
    pile, new = texts[::2], texts[1::2]
    task = kinds_votes.Task(head, pile, np.arange(80), labels[::2], new, labels[1::2])
    found = kinds_votes.variants(task)
    assert found["plain"] == task.gains(head) and found["adapted"] == task.gains(learn_unlabelled(head, pile))
    assert np.isnan(found["graph"][1]) and set(found) == {"plain", *kinds_votes.TITLES}
    assert unlabelled.EVENING > 0 and unlabelled.between(0.0, 0.4, 0.8) == 0.0  # what a variant changed is back


def test_the_table_of_votes_shows_changes_by_set() -> None:
    for pile, new in ((1.0, 2.0), (3.0, 4.0)):
        accuracy = dict.fromkeys(kinds_votes.TITLES, (80.0 + pile, 70.0 + new)) | {"plain": (80.0, 70.0)}
        key = {"set": "hwu64", "pile": "even", "per": 10}
        write("votes", {**key, "accuracy": accuracy | {"graph": (85.0, float("nan"))}})
    table = kinds_votes.votes_table()
    assert "| hwu64 | +2.00 / +3.00 | +2.00 / +3.00 | +2.00 / +3.00 | +2.00 / +3.00 | +5.00 |" in table
    assert "| pile: even, 10 | +2.00" in table and "| mean of all tasks | +2.00" in table

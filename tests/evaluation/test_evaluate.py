"""A trained model on novel classes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from dmin.data import choose_split
from dmin.encoder import Encoder
from dmin.errors import ConfigError, DataError
from dmin.evaluation import EvaluationPlan, evaluate_model
from dmin.evaluation.evaluation_page import hardest_texts
from dmin.methods import create
from dmin.model import HeadInfo, TrainedModel
from dmin.training.sources import VectorTable
from tests.conftest import word_corpus

CORPUS = word_corpus()
NAME, SPLIT = choose_split(CORPUS, seed=1, sizes=(3, 2, 4))


@pytest.fixture
def model(tiny_encoder: Encoder) -> TrainedModel:
    import torch

    memory = torch.randn(3, 24, generator=torch.Generator().manual_seed(0))
    info = HeadInfo("dmin", {}, 3, 2, 24, SPLIT.train, "cls", 64, {"data": "words"})
    return TrainedModel(tiny_encoder, create("dmin", 24, way=3, shot=2, base_memory=memory).eval(), info)


def test_everything_is_written(model: TrainedModel, tmp_path: Path) -> None:
    plan = EvaluationPlan(CORPUS, NAME, SPLIT, [2, 4], [1, 5], episodes=12, queries=4)
    cells = evaluate_model(model, plan, tmp_path, warn=pytest.fail)
    assert len(cells) == 8
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["method"], summary["data"], summary["split"]) == ("dmin", "words", NAME)
    assert {(c["method"], c["way"], c["shot"]) for c in summary["cells"]} == {
        (method, way, shot) for method in ("dmin", "nearest") for way in (2, 4) for shot in (1, 5)
    }
    assert all(0 <= c["accuracy"] <= 1 and c["ci95"] >= 0 and c["episodes"] == 12 for c in summary["cells"])
    nearest = next(c for c in summary["cells"] if (c["method"], c["way"], c["shot"]) == ("nearest", 2, 5))
    assert nearest["accuracy"] > 0.6  # word salads can be told apart, even by random weights
    per_class = json.loads((tmp_path / "per_class.json").read_text())
    assert set(per_class[-1]["classes"]) == set(SPLIT.test)
    assert len(list(tmp_path.glob("confusion-*.png"))) == 4
    assert len(list((tmp_path / "episodes").glob("*.json"))) == 4
    page = (tmp_path / "report.html").read_text()
    assert page.count('class="matrix"') == 4 and "Beside nearest prototype, it is significantly better in" in page
    assert "Texts that were most often wrong" in page and "the nearest text of" in page
    again = evaluate_model(model, plan, tmp_path, warn=pytest.fail)
    assert [cell.results.accuracies for cell in again] == [cell.results.accuracies for cell in cells]


def test_a_plan_that_cannot_work_is_refused_before_anything_is_written(model: TrainedModel, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="5-way episodes need 5 classes, but there are 4"):
        evaluate_model(model, EvaluationPlan(CORPUS, NAME, SPLIT, [5], [1], 3, 4), tmp_path, warn=pytest.fail)
    with pytest.raises(ConfigError, match="--episodes 0"):
        evaluate_model(model, EvaluationPlan(CORPUS, NAME, SPLIT, [2], [1], 0, 4), tmp_path, warn=pytest.fail)
    with pytest.raises(DataError, match="unknown part 'dev'"):
        evaluate_model(model, EvaluationPlan(CORPUS, NAME, SPLIT, [2], [1], 3, 4, "dev"), tmp_path, warn=pytest.fail)
    assert not list(tmp_path.iterdir())


def test_the_hardest_texts_are_those_that_were_wrong_in_most_of_their_episodes() -> None:
    import torch

    rows = list(CORPUS.by_class[SPLIT.test[0]])[:3]
    own, other = SPLIT.test[0], SPLIT.test[1]
    vectors = VectorTable(len(CORPUS.texts), range(len(CORPUS.texts)), torch.eye(len(CORPUS.texts)))
    wrong = Counter({(rows[0], other): 3, (rows[1], other): 1, (rows[1], SPLIT.test[2]): 5, (rows[2], other): 1})
    found = hardest_texts(wrong, Counter({rows[0]: 6, rows[1]: 6, rows[2]: 1}), CORPUS, vectors)
    assert [list(row.cells) for row in found] == [[own, SPLIT.test[2], "100", "6"], [own, other, "50", "6"]]
    assert found[1].reason.startswith(f"Answered as {other} in 3 of 6 episodes; the nearest text of {other} is “")

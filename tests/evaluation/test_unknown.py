"""Queries of classes outside the episode."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmin.data import seeded_split
from dmin.encoder import Encoder
from dmin.errors import ConfigError
from dmin.evaluation import EvaluationPlan
from dmin.evaluation.protocol import draw_episodes
from dmin.evaluation.unknown import draw_unknown, evaluate_unknown
from dmin.methods import create
from dmin.model import HeadInfo, TrainedModel
from dmin.model.calibration import Calibration
from tests.conftest import word_corpus

CORPUS = word_corpus()
SPLIT = seeded_split(CORPUS.classes, 0, (1, 1, 7))
CUT = Calibration(20.0, 0.0, 0.0, 0.1, cut=0.5, cut_per_log_example=0.0, name_weight=1.0)


def model(encoder: Encoder, calibration: Calibration | None = CUT) -> TrainedModel:
    info = HeadInfo("nearest", {}, 3, 2, encoder.width, (), encoder.pooling, encoder.max_length)
    stored = calibration.as_dict() if calibration else None
    return TrainedModel(encoder, create("nearest", encoder.width, way=3, shot=2), replace(info, calibration=stored))


def plan(way: int = 3) -> EvaluationPlan:
    return EvaluationPlan(CORPUS, "seed-0", SPLIT, (way,), (2,), episodes=6, queries=4)


def test_unknown_queries_come_from_other_classes_and_are_the_same_every_time() -> None:
    for number, episode in enumerate(draw_episodes(CORPUS, SPLIT.test, 3, 2, 4, 5)):
        drawn = draw_unknown(CORPUS, SPLIT.test, episode, number)
        assert drawn == draw_unknown(CORPUS, SPLIT.test, episode, number) and len(drawn) == 12
        labels = {CORPUS.labels[row] for row in drawn}
        assert labels <= set(SPLIT.test) and not labels & set(episode.classes)


def test_figures_of_each_rate(tiny_encoder: Encoder, tmp_path: Path) -> None:
    none, half = evaluate_unknown(model(tiny_encoder), plan(), [0.0, 0.5], tmp_path)
    assert np.isnan(none["auroc"]) and none["unknown_refused"] == 0.0
    assert none["right"] == none["known_right"]
    assert 0 <= half["auroc"] <= 1 and half["known_right"] == none["known_right"]
    # Half of all queries are unknown: what is right in all is the mean of both kinds.
    assert half["right"] == pytest.approx((half["known_right"] + half["unknown_refused"]) / 2)
    assert [row["rate"] for row in json.loads((tmp_path / "unknown.json").read_text())] == [0.0, 0.5]


def test_a_cut_above_all_refuses_all(tiny_encoder: Encoder, tmp_path: Path) -> None:
    (row,) = evaluate_unknown(model(tiny_encoder, replace(CUT, cut=1.1)), plan(), [0.5], tmp_path)
    assert row["known_refused"] == row["unknown_refused"] == 1.0 and row["right"] == 0.5


def test_what_cannot_be_done_is_said(tiny_encoder: Encoder, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="without calibration cannot refuse"):
        evaluate_unknown(model(tiny_encoder, None), plan(), [0.5], tmp_path)
    with pytest.raises(ConfigError, match="leave none for unknown queries"):
        evaluate_unknown(model(tiny_encoder), plan(way=7), [0.5], tmp_path)

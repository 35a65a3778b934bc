"""Evaluation of refusal: episodes with queries of unknown classes.

The threshold is the one that the model learned on its validation classes; nothing is tuned on these episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from dmin.data import Corpus, Episode
from dmin.errors import ConfigError
from dmin.evaluation.evaluation_plan import EvaluationPlan
from dmin.evaluation.protocol import TEST_SEED, draw_episodes, encode_classes
from dmin.evaluation.quality import separation
from dmin.files import write_json
from dmin.model import TrainedModel
from dmin.model.calibration import Calibration
from dmin.progress import progress
from dmin.training.sources import EncodedTexts


def evaluate_unknown(
    model: TrainedModel, plan: EvaluationPlan, unknown_rates: Sequence[float], out: Path, *, show: bool = False
) -> list[dict[str, float]]:
    """For each setting and rate: accuracy over all and over known queries, rejections of both kinds, and the AUROC.

    Args:
        model: with a calibration.
        plan: which episodes.
        unknown_rates: fractions of all queries that are drawn from test classes outside the episode.
        out: where `unknown.json` goes.
        show: show progress.
    """
    if model.info.calibration is None:
        raise ConfigError(f"a {model.info.method} model without calibration cannot refuse: train it again")
    calibration = Calibration.from_dict(model.info.calibration)
    classes = plan.split.part(plan.part)
    table = encode_classes(model, plan.corpus, classes, show=show)
    found = []
    for way in plan.ways:
        if way >= len(classes):
            raise ConfigError(f"{way}-way episodes of {len(classes)} classes leave none for unknown queries")
        for shot in plan.shots:
            episodes = draw_episodes(plan.corpus, classes, way, shot, plan.queries, plan.episodes)
            limit = calibration.threshold(shot)
            with progress(f"{way}-way {shot}-shot", len(episodes), unit="episodes", show=show) as advance:
                known, unknown, right = [], [], []
                for number, episode in enumerate(episodes):
                    drawn = draw_unknown(plan.corpus, classes, episode, number)
                    inside, outside, hits = _score(model, table, episode, drawn)
                    known.append(inside)
                    unknown.append(outside)
                    right.append(hits)
                    advance()
            found += [_figures(way, shot, rate, limit, known, unknown, right) for rate in unknown_rates]
    write_json(out / "unknown.json", found)
    return found


def draw_unknown(corpus: Corpus, classes: Sequence[str], episode: Episode, number: int) -> list[int]:
    """As many texts of other classes as the episode has queries, the same ones every time."""
    random = np.random.default_rng([TEST_SEED, 8, number])
    pool = [row for label in classes if label not in episode.classes for row in corpus.by_class[label]]
    return [int(row) for row in random.choice(pool, size=len(episode.query_rows))]


@torch.no_grad()
def _score(
    model: TrainedModel, table: EncodedTexts, episode: Episode, unknown: Sequence[int]
) -> tuple[list[float], list[float], list[bool]]:
    query = torch.tensor([*episode.query_rows, *unknown])
    scores = model.method(table.at(torch.tensor(episode.support)), table.at(query)) / model.method.temperature
    highest, answers = scores.max(dim=-1)
    size = len(episode.query_rows)
    hits = (answers[:size].cpu() == torch.tensor(episode.query_labels)).tolist()
    return highest[:size].tolist(), highest[size:].tolist(), hits


def _figures(
    way: int,
    shot: int,
    rate: float,
    limit: float,
    known: Sequence[Sequence[float]],
    unknown: Sequence[Sequence[float]],
    right: Sequence[Sequence[bool]],
) -> dict[str, float]:
    """Figures of a setting at one unknown rate; rejecting an unknown query is right, rejecting a known one is wrong."""
    inside, hits = np.concatenate(known), np.concatenate(right)
    # The first unknown queries of each episode, so many that they make up `rate` of its queries.
    each = round(rate / (1 - rate) * len(known[0]))
    outside = np.concatenate([scores[:each] for scores in unknown])
    accepted, refused = inside >= limit, outside < limit
    total = len(inside) + len(outside)
    return {
        "way": way,
        "shot": shot,
        "rate": rate,
        "threshold": limit,
        "right": float(((hits & accepted).sum() + refused.sum()) / total),
        "known_right": float((hits & accepted).mean()),
        "known_refused": float(1 - accepted.mean()),
        "unknown_refused": float(refused.mean()) if len(outside) else 0.0,
        "auroc": separation(inside, outside).auroc if len(outside) else float("nan"),
    }

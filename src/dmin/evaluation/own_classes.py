"""A model of all classes of its data, measured on held-out texts beside logistic regression on the same vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from dmin.evaluation.statistics import Interval, mean_interval
from dmin.files import write_json
from dmin.methods import METHODS
from dmin.methods.base import unit
from dmin.model import TrainedModel
from dmin.training.own_classes import LabelledVectors, own_cosines
from dmin.training.small_tasks import Encode
from dmin.training.task import Task

STRENGTH = 10.0  # scikit-learn's C
LARGEST = 20_000_000  # texts x classes up to which the regression takes about a minute


@dataclass(frozen=True)
class OwnClassesResult:
    """Accuracy of a model and of logistic regression on the held-out texts of all classes."""

    classes: int
    trained: int  # texts that they learned from
    texts: int  # held out
    accuracies: dict[str, Interval]  # by title; the model first

    def as_dict(self) -> dict[str, Any]:
        """As it stands in `summary.json`."""
        rows = [
            {"title": title, "accuracy": found.mean, "ci95": found.half_width}
            for title, found in self.accuracies.items()
        ]
        return {"classes": self.classes, "trained": self.trained, "texts": self.texts, "rows": rows}


def evaluate_own_classes(
    model: TrainedModel, task: Task, out: Path, encode: Encode, *, warn: Callable[[str], None]
) -> OwnClassesResult:
    """Measure a model that was trained with all_classes, and write `summary.json`.

    Args:
        model: the model.
        task: what it was trained on; its held-out texts are answered.
        out: the run folder.
        encode: texts to vectors [n, d], by the model's encoder.
        warn: called where the baseline is left out.
    """
    train = LabelledVectors.of(task.corpus, task.base_texts.train, encode)
    held = LabelledVectors.of(task.corpus, task.base_texts.held_out, encode)
    truth = held.labels.cpu().numpy()
    right = {model.method.title: own_cosines(model.method, held.vectors).argmax(-1).cpu().numpy() == truth}
    if len(train.labels) * len(task.base_classes) <= LARGEST:
        title = f"{METHODS['logistic'].traits.title} on the same vectors"
        right[title] = logistic_answers(train, held.vectors) == truth
    else:
        warn(
            f"{len(train.labels)} texts in {len(task.base_classes)} classes: logistic regression beside it is left out"
        )
    found = OwnClassesResult(
        len(task.base_classes),
        len(train.labels),
        len(held.labels),
        {title: mean_interval(values.astype(float).tolist()) for title, values in right.items()},
    )
    summary = {"method": model.info.method, "data": task.corpus.name, "split": task.split_name, "cells": []}
    write_json(out / "summary.json", {**summary, "held_out": found.as_dict(), "trained_on": model.info.trained_on})
    return found


def logistic_answers(train: LabelledVectors, query: Tensor) -> np.ndarray[Any, np.dtype[np.int64]]:
    """What logistic regression on L2-normalised vectors answers, [n]."""
    from sklearn.linear_model import LogisticRegression

    regression = LogisticRegression(C=STRENGTH, max_iter=1000)
    regression.fit(unit(train.vectors).cpu().numpy(), train.labels.cpu().numpy())
    answers: np.ndarray[Any, np.dtype[np.int64]] = regression.predict(unit(query).cpu().numpy())
    return answers

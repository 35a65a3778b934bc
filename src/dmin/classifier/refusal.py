"""When to answer "none of these": a threshold on the raw similarity, calibrated on the classifier's own classes.

No out-of-scope text is needed: each class in turn plays the unknown one. Its examples, scored against all other classes,
are what a stranger looks like; scored against their own class without themselves, they are what belongs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from dmin.classifier.support import Knowledge
from dmin.errors import DataError
from dmin.methods import FewShotMethod


def calibrate_threshold(knowledge: Knowledge, method: FewShotMethod, strangers: Tensor | None = None) -> float:
    """The threshold that best tells what belongs from what does not (highest balanced accuracy).

    Args:
        knowledge: at least two classes, one of them with two examples.
        method: what scores.
        strangers: vectors [n, d] of texts known to belong nowhere, if there are any; they replace the left-out classes.
    """
    belongs, outside = [], []
    for entry in knowledge.classes:
        others = knowledge.without(entry.label)
        rows = range(len(entry.examples))
        for row in rows:
            query = entry.vectors[row : row + 1]
            if strangers is None and others.classes:
                outside.append(best_score(others, method, query))
            rest = [index for index in range(len(entry.texts)) if index != row]
            if rest:
                alone = method.score_prepared(entry.prepared[rest].unsqueeze(0), query) / method.temperature
                belongs.append(float(alone[0, 0]))
    if strangers is not None:
        outside = [best_score(knowledge, method, strangers[index : index + 1]) for index in range(len(strangers))]
    if not belongs or not outside:
        raise DataError(
            'reject="auto" needs two classes, one of them with two examples (or a name): give a number instead'
        )
    return best_cut(np.array(belongs), np.array(outside))


def best_score(knowledge: Knowledge, method: FewShotMethod, query: Tensor) -> float:
    """The highest raw similarity of one query [1, d] to any class."""
    scores = [method.score_prepared(b.prepared, query, b.mask) for b in knowledge.buckets]
    return float(torch.cat(scores, dim=-1).max()) / method.temperature


def best_cut(belongs: Any, outside: Any) -> float:
    """The cut between two samples with the highest balanced accuracy; the middle of the best gap."""
    values = np.unique(np.concatenate([belongs, outside]))
    cuts = np.concatenate([[values[0] - 1e-6], (values[1:] + values[:-1]) / 2, [values[-1] + 1e-6]])
    balanced = [(belongs >= cut).mean() + (outside < cut).mean() for cut in cuts]
    return float(cuts[int(np.argmax(balanced))])

"""When to answer "none of these": a threshold on the raw cosine.

With reject="auto" each example is left out of its own class and scored as if it were new. The threshold is the cosine that
all but a small part of them reach; how small a part, the model learned on validation classes some of which played the
unknown (`dmin.training.calibrate`). So it fits the user's own domain and needs no out-of-scope text. Where such texts are
given, it is the cut that best tells the two apart. Classes of one example alone cannot be left out: then the model's own
cut is used, from the same validation classes; with the adaptive head, whose cosines depend on the kind of text, the median
of the cosines that examples have with the nearest other class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dmin.adaptive.fit import quantile
from dmin.classifier.arrays import Array, as_numpy
from dmin.classifier.knowledge import Knowledge
from dmin.classifier.left_out import example_vectors, leave_each_out
from dmin.classifier.scoring import Model
from dmin.errors import ConfigError, DataError, unknown_name
from dmin.model.calibration import Calibration

Reject = float | Mapping[Any, float] | Literal["auto"] | None
FALLBACK_PART = 0.1  # of the examples that may lie below the threshold, where a head.json has no `refused_part`
CLASSES = 300  # enough to find a quantile
_ENOUGH = 5  # examples that can be left out


def check_reject(reject: Any) -> None:
    """Refuse a `reject` that is no cosine (a number from -1 to 1), no mapping of them and not "auto"."""
    if reject is None or (isinstance(reject, str) and reject == "auto"):
        return
    values = list(reject.values()) if isinstance(reject, Mapping) else [reject]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, Real) or math.isnan(value):
            raise ConfigError(f"reject={reject!r}: a number, a number for each label, 'auto' or None")
        if not -1 <= float(value) <= 1:
            raise ConfigError(f"reject={reject!r}: a cosine lies between -1 and 1, and so must {value!r}")


def check_reject_labels(reject: Any, labels: Sequence[Any]) -> None:
    """Raise an error that names a class which has a threshold but does not exist."""
    for label in reject if isinstance(reject, Mapping) else ():
        if label not in labels:
            raise unknown_name("class in reject", str(label), map(str, labels))


def free_label(labels: Sequence[Any]) -> Any:
    """A label for refused texts that no class has: "unknown" among strings, -1 among whole numbers, else None."""
    if all(isinstance(label, str) for label in labels):
        return next(name for name in ("unknown", "(unknown)", "(refused)", *_numbered(labels)) if name not in labels)
    if all(isinstance(label, int) and not isinstance(label, bool) for label in labels):
        return min(-1, min(labels, default=0) - 1) if -1 in labels else -1
    return None


def _numbered(labels: Sequence[Any]) -> list[str]:
    return [f"(refused {number})" for number in range(len(labels) + 1)]


def find_threshold(knowledge: Knowledge, model: Model, outside: Array | None = None) -> float | None:
    """The threshold of reject="auto"; None where the model's own cut is used.

    Args:
        knowledge: the classes.
        model: what scores.
        outside: vectors [n, d] of out-of-scope texts, if there are any.
    """
    in_scope = np.array([found.highest for found in leave_each_out(knowledge, model, CLASSES)])
    if outside is not None and not len(outside):
        raise DataError("outside holds no texts")
    needed = 1 if outside is not None else _ENOUGH
    if len(in_scope) < needed:
        others = nearest_others(knowledge, model) if outside is None and model.head is not None else np.empty(0)
        if len(others) >= _ENOUGH:
            return float(np.median(others))
        if model.calibration is None:
            raise DataError(
                f'reject="auto" needs {needed} or more examples in classes with another example or a name: give a number'
            )
        return None
    if outside is not None:
        return best_cut(in_scope, as_numpy(model.cosines(outside, knowledge)).max(axis=1))
    part = model.calibration.refused_part if model.calibration else FALLBACK_PART
    return quantile(in_scope, part)


def nearest_others(knowledge: Knowledge, model: Model) -> NDArray[Any]:
    """The cosine of each example with the nearest class that is not its own, of at most `CLASSES` classes; [n]."""
    columns = [column for column, entry in enumerate(knowledge.classes[:CLASSES]) if entry.examples]
    if not columns or len(knowledge.classes) < 2:
        return np.empty(0)
    rows = [(column, row) for column in columns for row in range(len(knowledge.classes[column].examples))]
    cosines = np.array(as_numpy(model.cosines(example_vectors(knowledge, rows), knowledge)))  # [n, C] (a copy)
    cosines[np.arange(len(rows)), [column for column, _ in rows]] = -np.inf
    found: NDArray[Any] = cosines.max(axis=1)
    return found


def column_limits(
    reject: Reject,
    threshold: float | None,
    calibration: Calibration | None,
    labels: Sequence[Any],
    sizes: Sequence[int],
) -> NDArray[np.float64]:
    """For each class the cosine below which a text is refused, [C]; minus infinity where nothing is."""
    if reject is None:
        return np.full(len(labels), -np.inf)
    if isinstance(reject, Mapping):
        return np.array([reject.get(label, -np.inf) for label in labels], dtype=float)
    if not isinstance(reject, str):
        return np.full(len(labels), float(reject))
    if threshold is not None or calibration is None:
        return np.full(len(labels), -np.inf if threshold is None else threshold)
    return np.array([calibration.threshold(size) for size in sizes])


def best_cut(in_scope: NDArray[Any], outside: NDArray[Any]) -> float:
    """The cut between two samples with the highest balanced accuracy; the middle of the best gap."""
    values = np.unique(np.concatenate([in_scope, outside]))
    cuts = np.concatenate([[values[0] - 1e-6], (values[1:] + values[:-1]) / 2, [values[-1] + 1e-6]])
    balanced = [(in_scope >= cut).mean() + (outside < cut).mean() for cut in cuts]
    return float(cuts[int(np.argmax(balanced))])

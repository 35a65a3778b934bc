"""Labels as scikit-learn gives them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def label_array(labels: Sequence[Any]) -> Any:
    """Labels of one plain type as an array of that type; anything else as objects, each as it was given."""
    if labels and len({type(label) for label in labels}) == 1 and isinstance(labels[0], str | int | float | np.generic):
        return np.array(labels)
    found = np.empty(len(labels), dtype=object)
    found[:] = labels
    return found

"""What `dmin search` may choose for a method: a few settings, each with a few values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Choice = tuple[str, tuple[Any, ...]]  # a setting of `dmin train`, and the values that are tried
TRIALS = 12


def rates(*values: float) -> Choice:
    """The learning rates of the method's own weights that are tried."""
    return "stage2.learning_rate", values


def scalar_rates(*values: float | None) -> Choice:
    """The learning rates of scales and single weights that are tried; None is that of the other weights."""
    return "stage2.scalar_learning_rate", values


def option(name: str, *values: Any) -> Choice:
    """The values of an option of the method that are tried."""
    return f"options.{name}", values


# For every method on vectors that has weights to learn: a linear map, vectors of norm 1, vectors around their mean.
COMMON: tuple[Choice, ...] = (
    option("input_map", False, True), option("input_unit", False, True), option("input_centre", False, True),
)  # fmt: skip


@dataclass(frozen=True)
class SearchSpace:
    """The declared search space of a method; the first value of each setting is its default.

    Args:
        choices: settings with the values that are tried.
        trials: how many combinations are tried; the same for all methods but those that are too slow.
        beyond: what only a sweep around the choice tries besides: values past the ends of a range, so that a choice at an
            end shows whether the range was too narrow, and options that are not among the choices.
    """

    choices: tuple[Choice, ...] = (rates(1e-3, 1e-4, 3e-4, 3e-3), *COMMON)
    trials: int = TRIALS
    beyond: tuple[Choice, ...] = ()

    @property
    def start(self) -> dict[str, Any]:
        """The default of each setting: the first trial."""
        return {name: values[0] for name, values in self.choices}

    @property
    def size(self) -> int:
        """How many combinations there are."""
        size = 1
        for _, values in self.choices:
            size *= len(values)
        return size

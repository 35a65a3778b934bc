"""One setting at a time around what a search chose: does another value gain beyond its confidence interval?

Where one does, the best of them is taken over and the sweep begins again around it, the same for every method, so that what
is left at the end is a choice that no single setting improves, or a plain statement that the rounds were used up. Where
nothing in the space gains, the sweep looks beyond it (`SearchSpace.beyond`), so that no choice stands at the end of a range
that was too narrow.

Unusual: intervals are over the judging episodes of one training seed, without a correction over the values that were tried;
a gain must pass its own interval only, so a sweep rather takes too much over than too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dmin.evaluation.search import Search, Trial, best
from dmin.evaluation.statistics import Interval
from dmin.methods import method_class
from dmin.methods.search_space import Choice
from dmin.progress import progress


@dataclass(frozen=True)
class Sweep:
    """Where a sweep ended, and the trials around it."""

    chosen: Trial
    around: list[Trial]
    rounds: int

    def gains(self) -> list[tuple[dict[str, Any], Interval]]:
        """What each trial around the choice changes, and its gain over the choice."""
        return [(changed(trial.settings, self.chosen.settings), trial.gain(self.chosen)) for trial in self.around]

    @property
    def settled(self) -> bool:
        """Does no single setting gain beyond its interval?"""
        return not any(gains_for_sure(gain) for _, gain in self.gains())

    def document(self) -> dict[str, Any]:
        """For the file of chosen settings."""
        return {
            "rounds": self.rounds,
            "settled": self.settled,
            "around": [
                {"changed": what, "gain": round(gain.mean, 5), "gain_ci95": round(gain.half_width, 5)}
                for what, gain in self.gains()
            ],
        }


def neighbours(choices: Sequence[Choice], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Every combination that differs from the given one in one setting."""
    return [{**settings, name: value} for name, values in choices for value in values if value != settings.get(name)]


def changed(settings: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """The settings that differ; one that only a sweep tries is not there before."""
    return {name: value for name, value in settings.items() if value != before.get(name)}


def gains_for_sure(gain: Interval) -> bool:
    """Is a gain beyond its 95 % confidence interval?"""
    return gain.mean - gain.half_width > 0


def sweep(search: Search, method: str, trials: Sequence[Trial], rounds: int) -> Sweep:
    """Sweep around the best of some trials, at most so many rounds; beyond the space where nothing in it gains."""
    space, here = method_class(method).traits.search, best(trials)
    for turn in range(1, rounds + 1):
        done = _around(search, method, here, space.choices, f"sweep {turn} of {method}")
        better = [trial for trial in done if gains_for_sure(trial.gain(here))]
        if not better:
            past = _around(search, method, here, space.beyond, f"sweep {turn} of {method}, beyond the space")
            done += past
            better = [trial for trial in past if gains_for_sure(trial.gain(here))]
        if not better or turn == rounds:
            return Sweep(here, done, turn)
        here = best(better)
    raise ValueError("a sweep has at least one round")


def _around(search: Search, method: str, here: Trial, choices: Sequence[Choice], title: str) -> list[Trial]:
    """The trials that differ from one in a single setting."""
    around = neighbours(choices, here.settings)
    with progress(title, len(around) * len(search.plan.cells), unit="cells", show=search.show) as advance:
        return [search.trial(method, settings, str(changed(settings, here.settings)), advance) for settings in around]

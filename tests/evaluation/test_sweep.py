"""The sweep: one setting at a time, what gains for sure is taken over, and what is left is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dmin.evaluation.search import CellResult, Ledger, Trial
from dmin.evaluation.sweep import Sweep, changed, neighbours, sweep
from dmin.methods import METHODS
from dmin.methods.search_space import SearchSpace, option, rates

SPACE = SearchSpace((rates(1e-3, 1e-4), option("capsules", None, 1, 2), option("input_unit", False, True)))


class Plan:
    """As much of a plan as a sweep looks at."""

    cells = (("a", 5, 1),)


class Known:
    """A search whose trials have known accuracies: episodes with 50 to 52 right answers, plus a gain by settings."""

    show, plan = False, Plan()

    def __init__(self, gain: Callable[[dict[str, Any]], int]) -> None:
        self.gain, self.asked = gain, list[dict[str, Any]]()

    def trial(self, method: str, settings: dict[str, Any], title: str, advance: object) -> Trial:
        del method, title, advance
        self.asked.append(settings)
        right = [50 + number % 3 + self.gain(settings) for number in range(30)]
        return Trial(settings, [CellResult("a", "s", 5, 1, 100, right, 1.0)])


@pytest.fixture
def method(monkeypatch: pytest.MonkeyPatch) -> str:
    """A method with the small space."""
    from dmin.evaluation import sweep as module

    monkeypatch.setattr(module, "method_class", lambda name: SimpleNamespace(traits=SimpleNamespace(search=SPACE)))
    return "stub"


def start(search: Known) -> list[Trial]:
    return [search.trial("stub", SPACE.start, "", None)]


def test_neighbours_differ_in_one_setting_and_are_all_there() -> None:
    around = neighbours(SPACE.choices, SPACE.start)
    assert len(around) == 1 + 2 + 1
    assert all(len(changed(settings, SPACE.start)) == 1 for settings in around)
    assert all(len(neighbours(m.traits.search.choices, m.traits.search.start)) >= 1 for m in METHODS.values())


def test_a_setting_that_only_a_sweep_tries_counts_as_changed() -> None:
    (tried,) = neighbours((option("masked", True),), SPACE.start)
    assert changed(tried, SPACE.start) == {"options.masked": True} and len(tried) == len(SPACE.start) + 1
    assert neighbours((option("masked", True),), tried) == []


def test_where_nothing_in_the_space_gains_the_sweep_looks_beyond_it(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dmin.evaluation import sweep as module

    wider = SearchSpace(SPACE.choices, beyond=(option("capsules", 4), option("masked", True)))
    monkeypatch.setattr(module, "method_class", lambda name: SimpleNamespace(traits=SimpleNamespace(search=wider)))
    assert wider.size == SPACE.size and wider.start == SPACE.start  # the trials of the search are the same
    search = Known(lambda s: {None: 0, 1: 0, 2: 2, 4: 5}[s["options.capsules"]] - 3 * s.get("options.masked", False))
    found = sweep(search, method, start(search), rounds=5)  # type: ignore[arg-type]
    assert found.chosen.settings == {**SPACE.start, "options.capsules": 4}  # by way of 2, the end of the range
    assert found.settled and found.rounds == 3
    assert {"options.masked": True} in [what for what, _ in found.gains()]
    assert sum(settings.get("options.capsules") == 4 for settings in search.asked[:5]) == 0  # not in the first round


def test_what_gains_is_taken_over_until_nothing_does(method: str) -> None:
    # Two settings gain only together with a third: one round alone would not find the best.
    search = Known(lambda s: (s["options.capsules"] == 2) * (2 + 3 * (s["stage2.learning_rate"] == 1e-4)))
    found: Sweep = sweep(search, method, start(search), rounds=5)  # type: ignore[arg-type]
    assert found.chosen.settings["options.capsules"] == 2 and found.chosen.settings["stage2.learning_rate"] == 1e-4
    assert found.settled and found.rounds == 3
    document = found.document()
    assert document["settled"] and len(document["around"]) == 4
    assert all(row["gain"] <= 0 for row in document["around"])


def test_rounds_that_are_used_up_are_said(method: str) -> None:
    search = Known(lambda s: 2 * (s["options.capsules"] == 2))
    found = sweep(search, method, start(search), rounds=1)  # type: ignore[arg-type]
    assert found.chosen.settings == SPACE.start and not found.settled


def test_a_gain_within_its_interval_is_left(method: str) -> None:
    class Noisy(Known):
        def trial(self, method: str, settings: dict[str, Any], title: str, advance: object) -> Trial:
            done = super().trial(method, settings, title, advance)
            if settings != SPACE.start:  # better by a hair on average, worse as often as better
                done.cells[0].right[:] = [
                    right + (4 if place % 2 else -3) for place, right in enumerate(done.cells[0].right)
                ]
            return done

    search = Noisy(lambda s: 0)
    found = sweep(search, method, start(search), rounds=2)  # type: ignore[arg-type]
    assert found.chosen.settings == SPACE.start and found.settled and found.rounds == 1
    assert all(gain.mean > 0 for _, gain in found.gains())


def test_two_processes_may_fill_one_ledger(tmp_path: Path) -> None:
    one, two = Ledger(tmp_path / "trials.json", {"seed": 0}), Ledger(tmp_path / "trials.json", {"seed": 0})
    cell = CellResult("a", "s", 5, 1, 10, [1], 1.0)
    one.add("first", cell)
    two.add("second", cell)
    assert set(Ledger(tmp_path / "trials.json", {"seed": 0}).cells) == {"first", "second"} == set(two.cells)


def test_a_new_cell_of_a_ledger_is_a_new_line(tmp_path: Path) -> None:
    path = tmp_path / "trials.json"
    ledger = Ledger(path, {"seed": 0})
    for number, name in enumerate(("first", 'with "marks"', "third")):
        ledger.add(name, CellResult("a", "s", 5, 1, 10, [number], 1.0))
        lines = path.read_text().splitlines()
        assert len(lines) == number + 3 and json.loads(path.read_text())["cells"].keys() == ledger.cells.keys()

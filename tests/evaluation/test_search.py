"""The search: the default first, the same trials for the same seed, resumed from its ledger, never a test class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dmin.encoder import Encoder
from dmin.errors import ConfigError, DataError
from dmin.evaluation import search as module
from dmin.evaluation.search import CellResult, Search, SearchPlan, Trial, best, combinations, report, suggest
from dmin.methods import METHODS
from dmin.methods.base import option_defaults
from dmin.methods.input_map import INPUT_OPTIONS
from dmin.methods.search_space import TRIALS, SearchSpace, option, rates
from dmin.training import load_config, prepare_task

SPACE = SearchSpace((rates(1e-3, 1e-4), option("capsules", None, 1, 2), option("input_unit", False, True)))


def silent(message: str) -> None:
    del message


def plan(
    data: Path, encoder: Path, methods: tuple[str, ...] = ("prototypical", "nearest"), **changes: Any
) -> SearchPlan:
    overrides: dict[str, Any] = {
        "encoder": str(encoder), "split_seed": 1, "split_sizes": (4, 2, 3), "queries": 4, "device": "cpu",
        "stage1.epochs": 1, "stage2.episodes": 4, "stage2.validate_every": 2, "stage2.validation_episodes": 3,
        "precision": "float32",
    }  # fmt: skip
    values = {"ways": (2,), "shots": (1,), "trials": 3, "episodes": 5, **changes}
    return SearchPlan(load_config(overrides=overrides), (str(data),), None, methods, **values)


def trial(right: list[int], **settings: Any) -> Trial:
    return Trial(settings or SPACE.start, [CellResult("a", "s", 5, 1, 10, right, 1.0)])


def test_every_method_declares_a_space_that_begins_with_its_defaults() -> None:
    for name, method in METHODS.items():
        space, defaults = method.traits.search, option_defaults(method)
        assert space.choices and space.size > 1 and len(set(dict(space.choices))) == len(space.choices), name
        assert space.trials == TRIALS or name in ("ataml", "finetune")
        for key, values in space.choices:
            assert len(set(map(str, values))) == len(values)
            if key == "stage2.learning_rate":
                assert values[0] == method.traits.learning_rate
            elif key == "stage2.scalar_learning_rate":
                assert values[0] == method.traits.scalar_learning_rate
            else:
                own = key.removeprefix("options.")
                assert values[0] == defaults.get(own, False), (name, key)
                assert own in defaults or own in INPUT_OPTIONS


def test_suggestions_begin_with_the_default_never_repeat_and_follow_from_the_seed() -> None:
    def run(seed: int) -> list[dict[str, Any]]:
        trials: list[Trial] = []
        for number in range(SPACE.size):
            settings = suggest(SPACE, trials, seed + number)
            trials.append(trial([5 + (settings["options.capsules"] == 2)], **settings))
        return [found.settings for found in trials]

    first = run(0)
    assert first[0] == SPACE.start == {
        "stage2.learning_rate": 1e-3, "options.capsules": None, "options.input_unit": False,
    }  # fmt: skip
    assert first == run(0) != run(1)
    assert sorted(map(str, first)) == sorted(map(str, combinations(SPACE)))  # all of them, none twice


def test_the_choice_is_never_below_the_default_and_says_how_sure_it_is() -> None:
    default, other, equal = trial([8, 8, 9], x=0), trial([9, 9, 9], x=1), trial([8, 8, 9], x=2)
    assert best([default, other, equal]) is other and best([default, equal]) is default
    gain = other.gain(default)
    assert gain.mean == pytest.approx(2 / 30) and gain.half_width > 0
    default.cells.append(CellResult("b", "s", 5, 1, 10, [10, 10, 10], 1.0))
    other.cells.append(CellResult("b", "s", 5, 1, 10, [9, 10, 10], 1.0))
    found = report({"dmin": [default, other]}, ["a", "b"])["dmin"]
    assert found["settings"] == {"x": 1} and found["by_data"] == {"a": {"x": 1}, "b": default.settings}
    assert found["validation_accuracy"] > found["default_accuracy"] and found["trials"] == 2


@pytest.mark.slow
def test_an_interrupted_search_goes_on_as_if_it_had_not_stopped(
    words_file: Path, tiny_encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = plan(words_file, tiny_encoder_folder, shots=(1, 2))
    whole = Search(chosen, tmp_path / "whole.json", warn=silent)
    whole.check()
    expected = whole.run()
    assert [len(trials) for trials in expected.values()] == [3, 2]
    assert expected["nearest"][0].settings == {"options.input_centre": False}
    usual, done = Search._measure, []

    def stop_in_the_fourth(search: Search, config: Any) -> CellResult:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(config)
        return usual(search, config)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Search, "_measure", stop_in_the_fourth)
        Search(chosen, tmp_path / "cut.json", warn=silent).run()
    again = Search(chosen, tmp_path / "cut.json", warn=silent)
    assert len(again.ledger.cells) == 3
    found = again.run()
    for method, trials in expected.items():
        assert [(t.settings, [c.right for c in t.cells]) for t in trials] == [
            (t.settings, [c.right for c in t.cells]) for t in found[method]
        ]
    with pytest.raises(ConfigError, match="holds a search with other settings"):
        Search(plan(words_file, tiny_encoder_folder, episodes=6), tmp_path / "cut.json", warn=silent)
    (tmp_path / "cut.json").write_text("[]")
    with pytest.raises(DataError, match="is not a ledger of dmin search"):
        Search(chosen, tmp_path / "cut.json", warn=silent)


@pytest.mark.slow
def test_no_text_of_a_test_class_is_read(
    words_file: Path, tiny_encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither encoded, nor drawn into an episode."""
    chosen = plan(words_file, tiny_encoder_folder, ("dmin", "nearest", "finetune", "ataml"), trials=1)
    search = Search(chosen, tmp_path / "trials.json", warn=silent)
    config = search._config("dmin", {}, str(words_file), 2, 1)
    task = prepare_task(config, silent)
    tested = {task.corpus.texts[row] for row in task.text_indices("test")}
    read: list[str] = []
    for name in ("encode", "token_ids"):
        if usual := getattr(Encoder, name, None):

            def spy(encoder: Encoder, texts: Any, *more: Any, usual: Any = usual, **named: Any) -> Any:
                read.extend(texts)
                return usual(encoder, texts, *more, **named)

            monkeypatch.setattr(Encoder, name, spy)
    usual_run, drawn = module.run_episodes, []

    def run(scorer: Any, episodes: Any, **named: Any) -> Any:
        drawn.extend(label for episode in episodes for label in episode.classes)
        return usual_run(scorer, episodes, **named)

    monkeypatch.setattr(module, "run_episodes", run)
    search.run()
    assert len(read) > 50 and not tested & set(read)
    assert drawn and set(drawn) <= set(task.split.valid)


def test_a_missing_optuna_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"the search needs optuna: pip install 'dmin\[search\]'"):
        suggest(SPACE, [trial([5])], 0)

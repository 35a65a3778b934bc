"""Comparisons: the same episodes for all, finished cells kept, wrong settings found before training."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dmin.errors import ConfigError
from dmin.evaluation.ablation import PAPER_ROWS, READING_ROWS
from dmin.evaluation.bench import Bench
from dmin.evaluation.chosen_settings import ChosenSettings, read_settings, write_settings
from dmin.evaluation.comparison import Comparison
from dmin.evaluation.comparison_plan import ComparisonPlan, TableRow, standard_rows
from dmin.evaluation.report import write_outputs
from dmin.evaluation.tables import build_tables, to_markdown
from dmin.methods import METHODS
from dmin.training import TrainConfig, load_config
from dmin.training.task import chosen_pooling

pytestmark = pytest.mark.slow

ALL = tuple(METHODS)
KEYS = [
    "fafaac0fdd351160",
    "345fff1857957c35",
    "4c52a4fc8a127d5a",
    "a85b76490040c1eb",
    "fd2b5baa4c751d31",
    "8ef1aa59327567fc",
]


def silent(message: str) -> None:
    del message


def plan(data: Path, encoder: Path, methods: tuple[str, ...] = ("dmin", "nearest"), **changes: Any) -> ComparisonPlan:
    overrides: dict[str, Any] = {
        "encoder": str(encoder), "split_seed": 1, "split_sizes": (4, 2, 3), "queries": 4, "device": "cpu",
        "stage1.epochs": 1, "stage2.episodes": 4, "stage2.validate_every": 2, "stage2.validation_episodes": 3,
        "precision": "float32", **changes.pop("settings", {}),
    }  # fmt: skip
    values = {"ways": (2,), "shots": (1, 3), "episodes": 6, **changes}
    return ComparisonPlan(load_config(overrides=overrides), (str(data),), (None,), standard_rows(methods), **values)


def run(plan: ComparisonPlan, out: Path) -> Comparison:
    comparison = Comparison(plan, out, warn=silent)
    comparison.check()
    comparison.run()
    return comparison


@pytest.fixture
def data(words_file: Path) -> Path:
    return words_file


def test_every_method_fills_its_cells(data: Path, tiny_encoder_folder: Path, tmp_path: Path) -> None:
    comparison = run(plan(data, tiny_encoder_folder, ("all",)), tmp_path)
    results = comparison.results()
    assert len(results) == len(ALL) * 2 and comparison.missing() == []
    for shot in (1, 3):
        hashes = {result.episode_hash for result in results if result.job.shot == shot}
        assert len(hashes) == 1  # the very same episodes
    titles = {result.job.row.name: result.title for result in results}
    assert titles["finetune"] == "fine-tune (head)"
    assert all(result.seconds > 0 and result.peak_megabytes > 10 for result in results)
    assert {r.trained_episodes for r in results if not METHODS[r.job.row.method].traits.meta_trained} == {0}
    assert {r.trained_episodes for r in results if METHODS[r.job.row.method].traits.meta_trained} == {4}


@pytest.mark.parametrize("start", ["stage1", "raw"])
@pytest.mark.parametrize("tune", ["full", "lora"])
def test_every_row_starts_from_the_same_encoder(
    data: Path, tiny_encoder_folder: Path, tmp_path: Path, tune: str, start: Any
) -> None:
    """A row's result does not depend on the rows that ran before it."""
    some: dict[str, Any] = {
        "settings": {"tune": tune, "stage2.encoder_learning_rate": 0.01},
        "start": start,
        "shots": (1,),
    }
    together = run(
        plan(data, tiny_encoder_folder, ("prototypical", "ataml", "lwof", "dmin", "nearest"), **some), tmp_path / "a"
    )
    alone = run(plan(data, tiny_encoder_folder, ("dmin",), **some), tmp_path / "b")
    found = next(result for result in together.results() if result.job.row.name == "dmin")
    assert found.accuracies == alone.results()[0].accuracies


def test_full_fine_tuning_says_how_many_episodes_it_had(data: Path, tiny_encoder_folder: Path, tmp_path: Path) -> None:
    rows = (TableRow("finetune", "finetune", {"steps": 2}), TableRow("nearest", "nearest"), TableRow("dmin", "dmin"))
    some = plan(data, tiny_encoder_folder, settings={"tune": "full"}, shots=(1,))
    made = run(
        ComparisonPlan(some.base, some.data, some.splits, rows, (2,), (1,), 1, 6, fine_tuned_episodes=3), tmp_path
    )
    result = made.results()[0]
    assert len(result.accuracies) == 3 and result.title == "BERT fine-tune (3 episodes)"
    table = build_tables(made.plan, made.results())[0]
    assert table.cells["finetune", (2, 1)].episodes == 3 and table.cells["nearest", (2, 1)].episodes == 6
    assert table.cells["finetune", (2, 1)].test is not None
    few = run(ComparisonPlan(some.base, some.data, some.splits, rows[:1], (2,), (1,), 1, 2), tmp_path / "few")
    assert few.results()[0].title == "BERT fine-tune (2 episodes)"
    every = replace(made.plan, rows=rows[:1], fine_tuned_episodes=None)
    assert len(run(every, tmp_path).results()[0].accuracies) == 6  # another cell: the three are not taken for all


def test_a_row_on_the_raw_encoder_stands_beside_those_after_stage_1(
    data: Path, tiny_encoder_folder: Path, tmp_path: Path
) -> None:
    settings = {"tune": "full", "stage1.encoder_learning_rate": 0.01, "stage1.epochs": 3}
    both = run(
        plan(data, tiny_encoder_folder, ("nearest", "nearest:raw"), settings=settings, shots=(1,)), tmp_path / "a"
    )
    raw = run(plan(data, tiny_encoder_folder, ("nearest",), settings=settings, shots=(1,), start="raw"), tmp_path / "b")
    after, before = both.results()
    assert (before.job.row.name, before.title) == ("nearest-raw", "nearest prototype (raw encoder)")
    assert before.accuracies == raw.results()[0].accuracies != after.accuracies
    every = [row.name for row in standard_rows(["all", "finetune:raw", "dmin"])]
    assert every[-1] == "finetune-raw" and every.count("dmin") == 1 and "ataml" in every
    with pytest.raises(ConfigError, match="'dmin:old': after the colon only raw is known"):
        standard_rows(["dmin:old"])


def test_chosen_settings_reach_the_rows_and_their_keys(data: Path, tiny_encoder_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    overall, here = {"options.capsules": 2, "stage2.learning_rate": 0.02}, {"options.capsules": 1}
    write_settings(path, {}, {"dmin": {"settings": overall, "by_data": {str(data): here}}})
    chosen = read_settings(path)
    plain = plan(data, tiny_encoder_folder, ("dmin", "nearest"), shots=(1,))
    tuned = replace(plain, chosen=chosen).prepare()
    assert tuned[0].config.options == {"capsules": 2}  # what won on all data and was swept, not the best of this set
    assert tuned[0].config.stage2.learning_rate == 0.02
    assert tuned[0].key != plain.prepare()[0].key and tuned[1].key == plain.prepare()[1].key
    assert chosen.of("dmin") == overall and chosen.of("matching") == {}
    own = replace(plain, chosen=chosen, rows=(TableRow("mine", "dmin", {"capsules": 3}),)).prepare()[0]
    assert own.config.options == {"capsules": 3}  # what a row changes stays


def test_an_interrupted_comparison_goes_on(
    data: Path, tiny_encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = plan(data, tiny_encoder_folder, ("dmin", "nearest", "logistic"))
    comparison = Comparison(chosen, tmp_path, warn=silent)
    usual, started = Bench.run, []

    def stop_in_the_third(bench: Bench, *job: Any) -> Any:
        started.append(job)
        if len(started) == 3:
            raise KeyboardInterrupt
        return usual(bench, *job)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Bench, "run", stop_in_the_third)
        comparison.run()
    assert len(comparison.results()) == 2
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    table = write_outputs(comparison, tmp_path, "Comparison", "dmin compare ...")[0]
    assert len(table.cells) == 2
    text = (tmp_path / "table.md").read_text()
    assert "4 cells are not made yet; this fills them: dmin compare ..." in text
    page = (tmp_path / "report.html").read_text()
    assert "4 cells are not made yet" in page and "has the highest mean accuracy in" in page and "What it cost" in page
    again = Comparison(chosen, tmp_path, warn=silent)
    assert len(again.run()) == 6
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())
    write_outputs(again, tmp_path, "Comparison", "dmin compare ...")
    assert "not made yet" not in (tmp_path / "table.md").read_text()


def test_a_cell_of_other_settings_or_a_damaged_one_is_made_again(
    data: Path, tiny_encoder_folder: Path, tmp_path: Path
) -> None:
    run(plan(data, tiny_encoder_folder, ("nearest",)), tmp_path)
    other = Comparison(plan(data, tiny_encoder_folder, ("nearest",), settings={"queries": 5}), tmp_path, warn=print)
    assert len(other.missing()) == 2
    notes: list[str] = []
    same = Comparison(plan(data, tiny_encoder_folder, ("nearest",)), tmp_path, warn=notes.append)
    assert same.missing() == []
    path = next((tmp_path / "cells").iterdir())
    path.write_text(path.read_text()[:50])
    same = Comparison(plan(data, tiny_encoder_folder, ("nearest",)), tmp_path, warn=notes.append)
    assert len(same.missing()) == 1 and "damaged" in notes[0]


def test_an_edited_file_is_other_data(data: Path, tiny_encoder_folder: Path, tmp_path: Path) -> None:
    chosen = plan(data, tiny_encoder_folder, ("nearest",))
    comparison = run(chosen, tmp_path / "out")
    assert comparison.missing() == []
    assert Comparison(chosen, tmp_path / "out", warn=silent).missing() == []
    data.write_text(data.read_text() + "boat,sea\n")
    assert len(Comparison(chosen, tmp_path / "out", warn=silent).missing()) == 2


def test_the_work_grows_with_the_jobs_and_not_with_their_square(
    data: Path, tiny_encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings are built once per job, the user's file is hashed once, a stored cell is read or written once."""
    calls: Counter[str] = Counter()

    def count(name: str) -> None:
        module, _, function = name.rpartition(".")
        usual = getattr(importlib.import_module(module), function)

        def counted(*given: Any, **named: Any) -> Any:
            calls[function] += 1
            return usual(*given, **named)

        monkeypatch.setattr(name, counted)

    count("dmin.evaluation.comparison_plan.load_config")
    count("dmin.evaluation.comparison_plan.file_digest")
    count("dmin.evaluation.comparison.read_document")
    count("dmin.evaluation.comparison.write_json")
    count("dmin.evaluation.comparison.open_corpus")
    count("dmin.evaluation.table_tests.paired_test")
    chosen = plan(data, tiny_encoder_folder, ("nearest", "logistic"), ways=(2, 3), reference="nearest")
    for time in range(2):
        comparison = Comparison(chosen, tmp_path, warn=silent)
        comparison.check()
        written: list[int] = []

        def write(made: Comparison = comparison, seen: list[int] = written) -> None:
            seen.append(len(made.results()))
            write_outputs(made, tmp_path, "Comparison", "dmin compare")

        comparison.run(after_setting=write)
        assert comparison.missing() == [] and len(comparison.results()) == 8
        assert written == ([2, 4, 6, 8] if time == 0 else [])
        expected = {"load_config": 8, "file_digest": 1, "open_corpus": 1}
        expected |= {"write_json": 8} if time == 0 else {"read_document": 8}
        tests = calls.pop("paired_test", 0)  # two per pair of rows and setting, fewer where rows are equal
        assert calls == expected and tests <= 8
        calls.clear()


def test_keys_of_stored_cells_stay_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that changes while neither settings nor code do would throw away cells that users have computed."""
    monkeypatch.setattr("dmin.evaluation.comparison_plan.code_digest", lambda method: f"code of {method}")
    rows = (*standard_rows(("dmin-plus", "ataml")), TableRow("without-dmm", "dmin", {"use_memory": False}))
    plain: dict[str, Any] = {"chosen": ChosenSettings("plain", {})}
    some = ComparisonPlan(
        load_config(overrides={"stage2.batch": 4}), ("banking77",), ("s1",), rows, (5,), (1,), **plain
    )
    named = ComparisonPlan(load_config(), ("banking77",), (None,), rows, (5,), (1,), start="raw", names=True, **plain)
    assert [prepared.key for one in (some, named) for prepared in one.prepare()] == KEYS
    changed = (
        TableRow("dmin", "dmin"),
        TableRow("a", "dmin", {"use_memory": False}),
        TableRow("b", "dmin", {"use_query": False}),
    )
    apart = ComparisonPlan(load_config(), ("banking77",), (None,), changed, (5,), (1,)).prepare()
    assert len({prepared.key for prepared in apart}) == 3  # an option that is off is an option that is set


@pytest.mark.parametrize(
    ("methods", "changes", "message"),
    [
        (("nearest", "hatt"), {"shots": (1, 2)}, "hatt 2-way 2-shot: hatt cannot be built for K=2"),
        (("lwof",), {"ways": (4,), "settings": {"split_sizes": (4, 1, 4)}}, "lwof"),
        (("dmin",), {"ways": (5,)}, "5-way episodes need 5 classes"),
        (("ataml",), {"ways": (3,)}, "ataml is trained for 3 classes, but only 2 validation classes"),
    ],
)
def test_jobs_that_cannot_work_are_refused_before_any_training(
    data: Path,
    tiny_encoder_folder: Path,
    tmp_path: Path,
    methods: tuple[str, ...],
    changes: dict[str, Any],
    message: str,
) -> None:
    comparison = Comparison(plan(data, tiny_encoder_folder, methods, **changes), tmp_path / "out", warn=silent)
    with pytest.raises(ConfigError, match=message):
        comparison.check()
    assert not (tmp_path / "out").exists()


def test_seeds_and_splits_are_told_apart(data: Path, tiny_encoder_folder: Path, tmp_path: Path) -> None:
    chosen = plan(data, tiny_encoder_folder, seeds=2, shots=(1,))
    comparison = run(chosen, tmp_path)
    table = build_tables(chosen, comparison.results())[0]
    cell = table.cells["dmin", (2, 1)]
    assert cell.seed_spread >= 0 and len(comparison.results()) == 4
    assert table.cells["nearest", (2, 1)].seed_spread == 0  # nothing is trained
    text = to_markdown(table)
    assert text.count("|") > 10 and "seeds: 2" in text


def test_every_row_has_the_pooling_of_its_method(data: Path, tiny_encoder_folder: Path, tmp_path: Path) -> None:
    """DMIN-plus reads two layers of a frozen encoder, the others one, unless the settings say otherwise for all."""
    rows = standard_rows(("dmin-plus", "nearest", "ataml"))
    some = plan(data, tiny_encoder_folder, shots=(1,))
    mixed = ComparisonPlan(some.base, some.data, some.splits, rows, (2,), (1,), 1, 6)
    kinds = [chosen_pooling(prepared.config) for prepared in mixed.prepare()]
    assert kinds == ["layers", "auto", "auto"]
    results = run(mixed, tmp_path / "mixed").results()
    assert len(results) == 3 and len({result.episode_hash for result in results}) == 1
    same = ComparisonPlan(
        load_config(overrides=some.base.model_dump() | {"pooling": "layers"}),
        some.data,
        some.splits,
        rows,
        (2,),
        (1,),
        1,
        6,
    )
    keys, other = ([prepared.key for prepared in chosen.prepare()] for chosen in (mixed, same))
    assert keys[0] == other[0] and keys[1] != other[1] and keys[2] == other[2]  # a method on tokens does not pool
    assert len(run(same, tmp_path / "same").results()) == 3
    tuned = load_config(overrides=some.base.model_dump() | {"tune": "full", "method": "dmin-plus"})
    assert chosen_pooling(tuned) == "auto"  # tuned encoders start alike


def test_names_for_every_row(data: Path, tiny_encoder_folder: Path, tmp_path: Path) -> None:
    methods = ("dmin-plus", "dmin", "matching", "lwof", "nearest", "logistic")
    plain = run(plan(data, tiny_encoder_folder, methods, shots=(1,)), tmp_path)
    named = run(plan(data, tiny_encoder_folder, methods, shots=(1,), names=True), tmp_path)
    assert len(named.results()) == len(methods) and len(plain.results()) == len(methods)
    assert len(list((tmp_path / "cells").iterdir())) == 2 * len(methods)
    before, after = ({result.job.row.name: result for result in comparison.results()} for comparison in (plain, named))
    for name in methods:  # the very same episodes, other support
        assert before[name].episode_hash == after[name].episode_hash
    assert any(before[name].accuracies != after[name].accuracies for name in methods)
    assert "with its name as one more example" in to_markdown(build_tables(named.plan, named.results())[0])
    with pytest.raises(ConfigError, match="hatt cannot learn from class names"):
        Comparison(plan(data, tiny_encoder_folder, ("hatt",), names=True), tmp_path, warn=silent).check()


def test_rows_have_the_searched_settings_unless_something_else_was_said() -> None:
    def config_of(**options: Any) -> TrainConfig:
        rows = options.pop("rows", standard_rows(("prototypical",)))
        base = load_config(overrides=options.pop("base", {}))
        made = ComparisonPlan(base, ("starter",), (None,), rows, (5,), (1,), **options)
        return made.prepare()[0].config

    searched = config_of()
    assert searched.options == {"project": False, "input_map": True, "input_unit": True}
    assert (searched.stage2.learning_rate, searched.stage2.scalar_learning_rate) == (1e-4, 1e-2)
    plain = config_of(chosen=ChosenSettings("plain", {}))
    assert plain.options == {} and plain.stage2.learning_rate is None
    assert config_of(base={"tune": "full"}).options == {}
    assert config_of(base={"stage2.learning_rate": 0.5}).stage2.learning_rate == 0.5
    tuned = config_of(rows=(TableRow("x", "prototypical", settings={"tune": "full"}),))
    assert tuned.tune == "full" and tuned.options == {}
    own = config_of(rows=(TableRow("x", "prototypical", {"project": True}),))
    assert own.options == {"project": True, "input_map": True, "input_unit": True}


def test_ablation_rows_build_and_differ(data: Path, tiny_encoder_folder: Path, tmp_path: Path) -> None:
    some = plan(data, tiny_encoder_folder, shots=(1,))
    kept = (row for row in PAPER_ROWS + READING_ROWS if row.name != "capsules-8")
    rows = (*kept, TableRow("capsules-6", "dmin", {"capsules": 6}, "6 capsules"))
    made = run(ComparisonPlan(some.base, some.data, some.splits, rows, (2,), (1,), 1, 6), tmp_path)
    assert len(made.results()) == 16
    names = {row.name for row in PAPER_ROWS}
    assert {"without-dmm", "without-qim", "iterations-1", "iterations-2", "dmin", "static-memory"} == names
    assert len({json.dumps(row.options, sort_keys=True) for row in PAPER_ROWS + READING_ROWS}) == 16

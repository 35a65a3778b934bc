"""Settings: YAML, overrides, and refusals that help."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dmin.errors import ConfigError
from dmin.training import TrainConfig, load_config
from dmin.training.config import differences, known_keys, searched_settings


def test_file_overrides_and_back(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("way: 10\nstage2:\n  episodes: 50\n")
    config = load_config(path, {"stage2.patience": 3, "base_classes": "a, b", "split_sizes": "4/3/2"})
    assert (config.way, config.stage2.episodes, config.stage2.patience) == (10, 50, 3)
    assert config.base_classes == ("a", "b") and config.split_sizes == (4, 3, 2)
    path.write_text(config.to_yaml())
    assert load_config(path) == config
    assert yaml.safe_load(config.to_yaml())["stage2"]["patience"] == 3


@pytest.mark.parametrize(
    ("given", "expected"), [("all", "all"), ("7", 7), (7, 7), (["a"], ("a",)), ("a,b", ("a", "b"))]
)
def test_base_classes(given: object, expected: object) -> None:
    assert load_config(overrides={"base_classes": given}).base_classes == expected


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"stage2.epsodes": 3}, "unknown setting 'stage2.epsodes': did you mean 'stage2.episodes'"),
        ({"wya": 3}, "unknown setting 'wya': did you mean 'way'"),
        ({"way": 1}, "'way' = 1: .*greater than or equal to 2"),
        ({"tune": "half"}, "'tune' = 'half'.*'full', 'lora' or 'none'"),
        ({"way.more": 1}, "'way'"),
    ],
)
def test_refusals(overrides: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(overrides=overrides)


def test_broken_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such configuration file"):
        load_config(tmp_path / "gone.yaml")
    (tmp_path / "x.yaml").write_text("- a\n")
    with pytest.raises(ConfigError, match="key: value"):
        load_config(tmp_path / "x.yaml")
    (tmp_path / "x.yaml").write_text("a: [")
    with pytest.raises(ConfigError, match="cannot read .* is not valid YAML"):
        load_config(tmp_path / "x.yaml")


def test_a_new_training_begins_with_what_a_search_chose(tmp_path: Path) -> None:
    plain, searched = (load_config(overrides={"method": "dmin"}, searched=yes) for yes in (False, True))
    assert plain.options == {} and searched.options["memory_capsules"] > 4
    assert load_config(overrides={"method": "dmin-plus"}, searched=True) == load_config()
    given = {"method": "dmin", "options.memory_capsules": 8, "stage2.learning_rate": 0.5}
    changed = load_config(overrides=given, searched=True)
    assert changed.options == {**searched.options, "memory_capsules": 8} and changed.stage2.learning_rate == 0.5
    path = tmp_path / "config.yaml"
    path.write_text(searched.to_yaml())
    assert load_config(path) == searched


@pytest.mark.parametrize(
    "given", [{"tune": "full"}, {"all_classes": True}, {"method": "nearest"}, {"method": "no such method"}]
)
def test_what_was_not_searched_begins_plain(given: dict[str, object]) -> None:
    assert searched_settings({"method": "dmin", **given}) == {}


def test_capsules_that_were_searched_fit_the_named_encoders_only() -> None:
    every = searched_settings({"method": "dmin"})
    for given in (
        {"options.capsules": 4}, {"options": {"capsules": 4}}, {"options.share_routing": True}, {"encoder": "some/folder"},
    ):  # fmt: skip
        left = searched_settings({"method": "dmin", **given})
        assert left == {key: value for key, value in every.items() if not key.endswith("_capsules")} != every


def test_a_complete_file_is_taken_as_it_is_and_a_part_of_options_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "plain.yaml"
    path.write_text(load_config(overrides={"method": "prototypical"}).to_yaml())
    assert load_config(path, searched=True).options == {}
    path.write_text("method: prototypical\n")
    assert load_config(path, searched=True).options["input_map"] is True
    some = load_config(overrides={"method": "dmin", "options": {"tau_learning_rate": 0.02}}, searched=True)
    assert some.options["tau_learning_rate"] == 0.02 and some.options["memory_capsules"] > 4


@pytest.mark.parametrize("given", [{"options": 5}, {"method": ["dmin"]}])
def test_what_is_no_setting_is_an_error_and_no_traceback(given: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        load_config(overrides=given, searched=True)


def test_differences_are_named() -> None:
    one, other = TrainConfig(), load_config(overrides={"way": 10, "stage1.epochs": 2})
    assert differences(one, other) == ["stage1.epochs: 10 -> 2", "way: 5 -> 10"]
    assert differences(one, TrainConfig()) == []


def test_every_setting_is_known_and_described() -> None:
    assert {"data", "stage1.epochs", "stage2.validation_episodes"} <= set(known_keys())

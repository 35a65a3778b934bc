"""Settings: YAML, overrides, and refusals that help."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dmin.errors import ConfigError
from dmin.training import TrainConfig, load_config
from dmin.training.config import differences, known_keys


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


def test_differences_are_named() -> None:
    one, other = TrainConfig(), load_config(overrides={"way": 10, "stage1.epochs": 2})
    assert differences(one, other) == ["stage1.epochs: 10 -> 2", "way: 5 -> 10"]
    assert differences(one, TrainConfig()) == []


def test_every_setting_is_known_and_described() -> None:
    assert {"data", "stage1.epochs", "stage2.validation_episodes"} <= set(known_keys())

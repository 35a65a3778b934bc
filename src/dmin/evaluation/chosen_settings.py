"""The settings that a search chose, as a YAML file that `dmin compare --settings` reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from dmin.data.yaml_documents import parse_yaml
from dmin.errors import ConfigError, DataError, one_line
from dmin.files import check_document, write_atomic

FORMAT = 1
PLAIN = "plain"  # the name of a choice of nothing: the methods' own defaults


class RowDocument(BaseModel):
    """What was chosen for one method; other keys, like accuracies and the best of each set, are for the reader."""

    model_config = ConfigDict(strict=True)

    settings: dict[str, Any]


class SettingsDocument(BaseModel):
    """The file as a whole."""

    model_config = ConfigDict(strict=True)

    format: int
    methods: dict[str, RowDocument]


@dataclass(frozen=True)
class ChosenSettings:
    """Settings of `dmin train` for each method: those that won on all data of a search, and were swept."""

    name: str  # of the file, for tables
    overall: dict[str, dict[str, Any]]

    def of(self, method: str) -> dict[str, Any]:
        """The settings of a method; none where it was not searched."""
        return dict(self.overall.get(method, {}))


def read_settings(path: Path) -> ChosenSettings:
    """Read a file of chosen settings.

    Raises:
        ConfigError: one line that says what is wrong with it.
    """
    try:
        stored = parse_yaml(path.read_text(encoding="utf-8"), path)
        found = check_document(stored, SettingsDocument, str(path))
    except FileNotFoundError as error:
        raise ConfigError(f"no such file of settings: {path}; dmin search writes one") from error
    except (OSError, UnicodeDecodeError, DataError) as error:
        raise ConfigError(f"cannot read {path}: {one_line(error)}") from error
    if found.format != FORMAT:
        raise ConfigError(f"{path}: format {found.format}; this version reads format {FORMAT}")
    return ChosenSettings(path.name, {method: row.settings for method, row in found.methods.items()})


def write_settings(path: Path, about: dict[str, Any], methods: dict[str, dict[str, Any]]) -> None:
    """Write a file of chosen settings, whole or not at all; `about` says how they were found.

    Other methods that the same search chose for before stay in the file.
    """
    before = parse_yaml(path.read_text(encoding="utf-8"), path) if path.is_file() else {}
    same = isinstance(before, dict) and before.get("format") == FORMAT and before.get("search") == about
    content = {"format": FORMAT, "search": about, "methods": {**(before["methods"] if same else {}), **methods}}
    write_atomic(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120))

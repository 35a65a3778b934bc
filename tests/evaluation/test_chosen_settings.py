"""Files of chosen settings, as `dmin search` writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dmin.errors import ConfigError
from dmin.evaluation.chosen_settings import read_settings, write_settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format: 2\nmethods: {}\n", "format 2; this version reads format 1"),
        ("methods: {}\n", "format"),
        ("- 1\n", "cannot read"),
        ("format: 1\nmethods:\n  dmin: 3\n", "dmin"),
    ],
)
def test_a_wrong_file_of_settings_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        read_settings(path)
    assert "\n" not in str(caught.value) and "settings.yaml" in str(caught.value)
    with pytest.raises(ConfigError, match="no such file of settings: .*; dmin search writes one"):
        read_settings(tmp_path / "none.yaml")


def test_methods_of_the_same_search_gather_in_one_file(tmp_path: Path) -> None:
    path, row = tmp_path / "settings.yaml", {"settings": {"options.input_unit": True}}
    write_settings(path, {"seed": 0}, {"dmin": row})
    write_settings(path, {"seed": 0}, {"lwof": row})
    assert set(read_settings(path).overall) == {"dmin", "lwof"}
    write_settings(path, {"seed": 1}, {"lwof": row})  # another search begins anew
    assert set(read_settings(path).overall) == {"lwof"}

"""Files are whole or not there."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from dmin.errors import DataError, ModelError, StorageError
from dmin.files import read_json, read_tensors, write_atomic, write_json


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file.*gone"):
        read_tensors(tmp_path / "gone")
    with pytest.raises(DataError, match="no such file.*gone"):
        read_json(tmp_path / "gone")


def test_broken_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(DataError, match="x.json is not valid JSON"):
        read_json(tmp_path / "x.json")


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """A real limit on file size stands for a full disk: the write fails half-way with an error of the system."""
    write_json(tmp_path / "x.json", {"old": True})
    program = (
        "import resource, sys; from pathlib import Path; from dmin.files import write_atomic\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "write_atomic(Path(sys.argv[1]), b'x' * 100_000)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "x.json")], capture_output=True, text=True, check=False
    )
    assert "StorageError: no room left to write" in done.stderr
    assert read_json(tmp_path / "x.json") == {"old": True}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_a_folder_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        write_atomic(tmp_path / "file" / "below.txt", "x")

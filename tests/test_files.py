"""Files are whole or not there."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dmin.errors import DataError, ModelError, StorageError
from dmin.files import read_json, read_tensors, write_atomic, write_json, write_tensors

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(3.5), "c": torch.zeros(0, 2)}


def test_tensors_come_back_with_their_metadata(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x.safetensors", TENSORS, {"step": "7"})
    tensors, metadata = read_tensors(tmp_path / "x.safetensors")
    assert metadata == {"step": "7"}
    assert set(tensors) == set(TENSORS)
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


@pytest.mark.parametrize("size", [0, 4, 40, -1])
def test_a_cut_file_is_refused_by_name(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x.safetensors"
    write_tensors(path, TENSORS)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ModelError, match="x.safetensors"):
        read_tensors(path)


def test_a_changed_number_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write_tensors(path, TENSORS)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match="damaged"):
        read_tensors(path)


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

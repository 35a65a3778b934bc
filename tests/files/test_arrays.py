"""Arrays on disk without torch, in the same format as tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from dmin.errors import ModelError
from dmin.files import read_arrays, read_tensors, write_arrays, write_tensors

ARRAYS = {
    "x": np.arange(6, dtype=np.float32).reshape(2, 3),
    "hashes": np.array([1, 2], np.uint8),
    "none": np.empty((0, 4), np.float32),
}


def test_both_ways_between_arrays_and_tensors(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", ARRAYS, {"kind": "test"})
    tensors, metadata = read_tensors(tmp_path / "a")
    assert metadata == {"kind": "test"}
    write_tensors(tmp_path / "b", tensors, metadata)
    for name in ("a", "b"):
        arrays, metadata = read_arrays(tmp_path / name)
        assert metadata == {"kind": "test"} and sorted(arrays) == sorted(ARRAYS)
        assert all(np.array_equal(arrays[key], ARRAYS[key]) for key in ARRAYS)
    assert isinstance(tensors["x"], torch.Tensor)


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(ModelError, match="no such file"):
        read_arrays(path)
    write_arrays(path, ARRAYS)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ModelError, match="damaged"):
        read_arrays(path)
    path.write_bytes(content[:20])
    with pytest.raises(ModelError, match="not a readable safetensors file"):
        read_arrays(path)

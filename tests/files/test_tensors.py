"""Tensors on disk: whole, and every change noticed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from dmin.errors import ModelError
from dmin.files import read_tensors, write_tensors

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(3.5), "c": torch.zeros(0, 2)}


def test_equal_content_has_equal_bytes(tmp_path: Path) -> None:
    """safetensors orders metadata at random; a resumed run must end with the bytes of one that was not killed."""
    metadata = {f"key{number}": "ü" * number for number in range(8)}
    for number in range(10):
        write_tensors(tmp_path / f"{number}.safetensors", {"a": torch.ones(3), "b": torch.zeros(2, 2)}, metadata)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    tensors, found = read_tensors(tmp_path / "0.safetensors")
    assert found == metadata and torch.equal(tensors["a"], torch.ones(3))


def test_tensors_come_back_with_their_metadata(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x.safetensors", TENSORS, {"step": "7"})
    tensors, metadata = read_tensors(tmp_path / "x.safetensors")
    assert metadata == {"step": "7"}
    assert set(tensors) == set(TENSORS)
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def test_names_that_share_memory_come_back_with_the_same_numbers(tmp_path: Path) -> None:
    """One weight of two modules, as with `share_routing`, or a part of another."""
    whole = torch.arange(6.0).reshape(2, 3)
    shared = {"one": whole, "two": whole, "part": whole[1]}
    write_tensors(tmp_path / "x.safetensors", shared)
    tensors, _ = read_tensors(tmp_path / "x.safetensors")
    assert set(tensors) == set(shared) and all(torch.equal(tensors[name], shared[name]) for name in shared)


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


def test_a_changed_letter_of_the_metadata_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write_tensors(path, TENSORS, {"state": "step 7"})
    path.write_bytes(path.read_bytes().replace(b"step 7", b"step 8"))
    with pytest.raises(ModelError, match="damaged"):
        read_tensors(path)


def test_a_file_without_a_digest_is_refused(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "x.safetensors")
    with pytest.raises(ModelError, match="carries no digest"):
        read_tensors(tmp_path / "x.safetensors")

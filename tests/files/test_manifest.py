"""Every change to a saved folder is noticed and named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dmin.errors import ModelError
from dmin.files import MANIFEST, check_manifest, write_manifest


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "saved"
    (folder / "model").mkdir(parents=True)
    (folder / "a.json").write_text('{"label": "refund"}')
    (folder / "model" / "b.bin").write_bytes(bytes(range(50)))
    (folder / "README.md").write_text("a card")
    write_manifest(folder, "test")
    return folder


def test_an_untouched_folder_passes_and_a_card_may_change(saved: Path) -> None:
    check_manifest(saved, "test")
    (saved / "README.md").write_text("another card")
    (saved / "added.txt").write_text("by somebody")
    check_manifest(saved, "test")


@pytest.mark.parametrize("name", ["a.json", "model/b.bin", MANIFEST])
def test_every_flipped_bit_is_noticed(saved: Path, name: str) -> None:
    content = (saved / name).read_bytes()
    for position in range(0, len(content), 7):
        changed = bytearray(content)
        changed[position] ^= 1 << (position % 8)
        (saved / name).write_bytes(changed)
        with pytest.raises(ModelError):
            check_manifest(saved, "test")


def test_files_of_two_folders_do_not_mix(saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(saved, other)
    (other / "a.json").write_text('{"label": "parcel"}')
    write_manifest(other, "test")
    shutil.copy(other / "a.json", saved / "a.json")
    with pytest.raises(ModelError, match=r"a\.json is damaged, or belongs to another folder"):
        check_manifest(saved, "test")


def test_a_missing_file_a_missing_manifest_and_another_kind_are_named(saved: Path) -> None:
    with pytest.raises(ModelError, match="holds a 'test'"):
        check_manifest(saved, "classifier")
    (saved / "model" / "b.bin").unlink()
    with pytest.raises(ModelError, match=r"model/b\.bin is missing"):
        check_manifest(saved, "test")
    (saved / MANIFEST).unlink()
    with pytest.raises(ModelError, match="no such file"):
        check_manifest(saved, "test")


@pytest.mark.parametrize("name", ["../outside.txt", "/etc/hostname", "model/../../outside.txt"])
def test_a_name_that_leads_out_of_the_folder_is_refused(saved: Path, name: str) -> None:
    from dmin.files.manifest import Manifest

    (saved.parent / "outside.txt").write_text("x")
    found = Manifest(format=1, kind="test", files={name: "0" * 64}, digest="")
    (saved / MANIFEST).write_text(json.dumps({**found.model_dump(), "digest": found.expected_digest()}))
    with pytest.raises(ModelError, match="outside of the folder"):
        check_manifest(saved, "test")

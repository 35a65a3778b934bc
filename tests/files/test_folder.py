"""A saved folder is whole at every instant: kills, several writers at once, links, full disks, leftovers."""

from __future__ import annotations

import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from dmin.errors import StorageError
from dmin.files import check_manifest, folder, new_folder, reading_folder, write_atomic, write_manifest
from tests.files.killing import run_until_killed

STRESS = 1 if os.environ.get("DMIN_STRESS") else 10  # CI does a tenth


def save(path: Path, content: str) -> None:
    with new_folder(path) as part:
        for number in range(3):
            write_atomic(part / f"{number}.txt", content)
        write_manifest(part, "test")


def content_of(path: Path) -> str:
    """The content of a whole folder; every file must say the same."""
    with reading_folder(path) as found:
        check_manifest(found, "test")
        (said,) = {(found / f"{number}.txt").read_text() for number in range(3)}
    return said


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_a_folder_is_made_and_replaced_and_nothing_else_stays(tmp_path: Path) -> None:
    save(tmp_path / "saved", "one")
    assert content_of(tmp_path / "saved") == "one"
    save(tmp_path / "saved", "two")
    assert content_of(tmp_path / "saved") == "two"
    assert names(tmp_path) == ["saved"]


def test_an_error_leaves_the_old_folder(tmp_path: Path) -> None:
    save(tmp_path / "saved", "one")
    with pytest.raises(RuntimeError, match="broken"), new_folder(tmp_path / "saved") as part:
        write_atomic(part / "0.txt", "half")
        raise RuntimeError("broken")
    assert content_of(tmp_path / "saved") == "one"
    assert names(tmp_path) == ["saved"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    save(tmp_path / "real", "one")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink()
    assert content_of(tmp_path / "link") == content_of(tmp_path / "real") == "two"
    assert names(tmp_path) == ["link", "real"]


def test_files_of_somebody_else_are_carried_over(tmp_path: Path) -> None:
    save(tmp_path / "saved", "one")
    (tmp_path / "saved" / "notes").mkdir()
    (tmp_path / "saved" / "notes" / "mine.txt").write_text("keep me")
    save(tmp_path / "saved", "two")
    assert (tmp_path / "saved" / "notes" / "mine.txt").read_text() == "keep me"
    assert content_of(tmp_path / "saved") == "two"


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write .*saved"):
        save(tmp_path / "file" / "saved", "one")


SAVE = """
import sys
from pathlib import Path
import dmin.files.folder as folders
from tests.files.test_folder import save
if sys.argv[2] == "two renames":
    folders._exchange = lambda one, other: False
start()
save(Path(sys.argv[1]), "new")
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["exchange", "two renames"])
def test_a_kill_at_any_point_leaves_a_whole_folder(tmp_path: Path, way: str) -> None:
    """Killed at each call that changes the disk: the old or the new content is loadable; the next save cleans up."""
    save(tmp_path / "count" / "saved", "old")
    total = run_until_killed(SAVE, [str(tmp_path / "count" / "saved"), way], 0)
    assert total > 15
    kills = 0
    for point in range(1, total + 1, 1 if STRESS == 1 else 3):
        place = tmp_path / f"kill{point}"
        save(place / "saved", "old")
        kills += run_until_killed(SAVE, [str(place / "saved"), way], point) == -1
        assert content_of(place / "saved") in ("old", "new"), f"killed at call {point}"
        save(place / "saved", "again")
        assert content_of(place / "saved") == "again"
        assert names(place) == ["saved"], f"killed at call {point}"
    assert kills >= total // 4


def _save_often(path: Path, mark: str, times: int) -> None:
    for number in range(times):
        save(path, f"{mark}{number}")


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_writers_at_once_leave_a_whole_folder_and_readers_never_see_a_mixture(tmp_path: Path, kind: str) -> None:
    path, times = tmp_path / "saved", 100 // STRESS
    save(path, "first")
    spawn = multiprocessing.get_context("spawn")
    start = threading.Thread if kind == "threads" else spawn.Process
    writers = [start(target=_save_often, args=(path, mark, times)) for mark in "ab"]
    for writer in writers:
        writer.start()
    seen = []
    while any(writer.is_alive() for writer in writers):
        seen.append(content_of(path))  # raises on a mixture
    for writer in writers:
        writer.join()
    assert seen
    assert content_of(path) in (f"a{times - 1}", f"b{times - 1}")
    assert names(tmp_path) == ["saved"]


def test_a_lock_is_free_after_its_block(tmp_path: Path) -> None:
    for _ in range(3):
        with folder.folder_lock(tmp_path / "x", shared=False):
            pass
    with folder.folder_lock(tmp_path / "x", shared=True), folder.folder_lock(tmp_path / "x", shared=True):
        pass
    assert names(tmp_path) == []

"""Folders that are whole at every instant: filled aside, then exchanged with the old one in a single step.

A writer holds an exclusive lock on the parent folder, a reader a shared one, so that no reader sees files of two versions.
Where the system can exchange two names at once (Linux, macOS), a crash at any moment leaves the whole old folder or the
whole new one under the name. Elsewhere there are two renames; after a crash between them `whole_folder` finds the copy
that is left. What a crashed writer left behind is removed by the next one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from dmin.errors import StorageError
from dmin.files.atomic import NO_ROOM, sync, umask
from dmin.files.manifest import foreign_files, is_whole

_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2, and RENAME_SWAP of renamex_np
_HERE = -100  # AT_FDCWD
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


@contextmanager
def new_folder(folder: Path, own: Sequence[str] = ()) -> Iterator[Path]:
    """Fill a temporary folder; if the block ends without an error, it takes the place of `folder` at once.

    A symbolic link stays: what it points to is replaced. Files in the old folder that its manifest does not list were put
    there by somebody else: they are carried over.

    Args:
        folder: the folder to make or replace.
        own: patterns of the files that are our own, for an old folder without a manifest (see `foreign_files`).

    Raises:
        StorageError: when it cannot be written; the old folder stays as it was.
    """
    part: Path | None = None
    try:
        folder = folder.resolve() if folder.is_symlink() else folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder_lock(folder, shared=False):
            _clean(folder)
            part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".part"))
            part.chmod(0o777 & ~umask())
            yield part
            _carry_over(folder, part, own)
            _sync_all(part)
            _put_in_place(part, folder)
            sync(folder.parent)
    except StorageError:
        raise
    except OSError as error:
        what = "no room left to write" if error.errno in NO_ROOM else "cannot write"
        raise StorageError(f"{what} {folder}: {error.strerror or error}") from error
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)


@contextmanager
def reading_folder(folder: Path) -> Iterator[Path]:
    """The folder, or the whole copy that a crash left in its place; no writer exchanges it inside the block."""
    folder = folder.resolve() if folder.is_symlink() else folder
    with folder_lock(folder, shared=True):
        yield whole_folder(folder)


def check_replaceable(folder: Path, marker: str) -> None:
    """Raise a `StorageError` unless `folder` is not there, is empty, or holds the file `marker` of an earlier save."""
    try:
        if folder.exists() and not folder.is_dir():
            raise StorageError(f"{folder} is a file: choose an empty or a new folder")
        if folder.exists() and not (folder / marker).is_file() and any(folder.iterdir()):
            raise StorageError(f"{folder} holds something else: choose an empty or a new folder")
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"cannot write {folder}: {error.strerror or error}") from error


def whole_folder(folder: Path) -> Path:
    """The folder if it is there, else the newest whole copy beside it, else the folder."""
    if folder.exists() or not folder.parent.is_dir():
        return folder
    copies = [path for path in _leftovers(folder) if is_whole(path)]
    return max(copies, key=lambda path: path.stat().st_mtime_ns, default=folder)


@contextmanager
def folder_lock(folder: Path, *, shared: bool) -> Iterator[None]:
    """Hold a lock on the parent of `folder`; where the system has no such locks, none is held."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    try:
        handle = os.open(folder.parent, os.O_RDONLY)
    except OSError:  # a parent that is not there, or cannot be read: the work itself says so
        yield
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in (*_CANNOT, errno.ENOLCK, errno.EBADF):
                raise
        yield
    finally:
        os.close(handle)


def _put_in_place(part: Path, folder: Path) -> None:
    if not folder.exists() or not any(folder.iterdir()):
        part.rename(folder)
    elif not _exchange(part, folder):
        old = part.with_suffix(".old")
        folder.rename(old)
        part.rename(folder)
        shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the system cannot."""
    call = _exchange_call()
    if call is None:
        return False
    if call(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code))


@cache
def _exchange_call() -> Any:
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            swap = library.renamex_np
            swap.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint]
            return lambda one, other: swap(one, other, _EXCHANGE)
        rename = library.renameat2
        rename.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
        return lambda one, other: rename(_HERE, one, _HERE, other, _EXCHANGE)
    except (AttributeError, OSError, TypeError):
        return None


def _leftovers(folder: Path) -> list[Path]:
    start = f".{folder.name}."
    return [
        path
        for path in folder.parent.iterdir()
        if path.name.startswith(start) and path.suffix in (".part", ".old") and path.is_dir() and not path.is_symlink()
    ]


def _clean(folder: Path) -> None:
    """Put a whole copy back under its name if the name is gone, then remove what crashed writers left."""
    found = whole_folder(folder)
    if found != folder:
        found.rename(folder)
    for path in _leftovers(folder):
        shutil.rmtree(path, ignore_errors=True)


def _carry_over(folder: Path, part: Path, own: Sequence[str]) -> None:
    for name in foreign_files(folder, own):
        target = part / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(folder / name, target)


def _sync_all(part: Path) -> None:
    for root, _, files in os.walk(part):
        for name in files:
            sync(Path(root) / name)
        sync(Path(root))

"""Atomic files: written under a temporary name, synced, then renamed."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from pathlib import Path

from dmin.errors import StorageError

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_atomic(path: Path, content: bytes | str) -> None:
    """Write `content` to `path` so that a reader, or a crash, sees the old file or the new one, never a part.

    Raises:
        StorageError: when it cannot be written; nothing half-written stays behind.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~umask())
        Path(temporary).replace(path)
        sync(path.parent)
    except BaseException as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        if error.errno in NO_ROOM:
            raise StorageError(
                f"no room left to write {path} ({len(data) / 1e6:.1f} MB): free some space, or choose another --out"
            ) from error
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, as hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk, so that a power cut cannot undo it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def umask() -> int:
    """The mode bits that new files must not have."""
    current = os.umask(0)
    os.umask(current)
    return current

"""A copy of an SQLite store while the service runs."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from dmin.errors import ConfigError, DataError, StorageError
from dmin.server.settings import store_url


def back_up(store: str, target: Path) -> int:
    """Copy a store into a new file, as of one moment; returns its size in bytes."""
    url = store_url(store)
    if not url.startswith("sqlite:///"):
        raise ConfigError("this copies SQLite stores: for PostgreSQL use pg_dump, see the page on PostgreSQL")
    source = Path(url.removeprefix("sqlite:///"))
    if not source.is_file():
        raise DataError(f"no store at {source}")
    if target.exists():
        raise StorageError(f"{target} is there already: give a new name")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with sqlite3.connect(source, timeout=15) as reading, sqlite3.connect(part) as writing:
            reading.backup(writing)
        writing.close()
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.rename(target)
    except (sqlite3.Error, OSError) as error:
        part.unlink(missing_ok=True)
        raise StorageError(f"cannot write {target}: {error}") from error
    return target.stat().st_size

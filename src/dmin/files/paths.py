"""Paths that a user gives, and the user's own folders."""

from __future__ import annotations

import os
from pathlib import Path

from dmin.errors import ConfigError


def user_path(path: str | Path) -> Path:
    """The path with `~` replaced by the user's folder.

    Raises:
        ConfigError: where `~name` names nobody, or the user has no folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{str(path)!r}: there is no folder of this user; write the path without ~") from error


def home_cache() -> Path:
    """The user's cache folder: $XDG_CACHE_HOME, else ~/.cache.

    Raises:
        ConfigError: for a user without a folder. (One among the temporary files could be filled by others beforehand.)
    """
    chosen = os.environ.get("XDG_CACHE_HOME")
    if chosen:
        return Path(chosen)
    try:
        return Path.home() / ".cache"
    except RuntimeError as error:
        raise ConfigError(
            "this user has no home folder: set DMIN_CACHE or HOME to a folder for cached vectors"
        ) from error

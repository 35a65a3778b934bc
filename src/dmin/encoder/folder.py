"""Where things that can be made again are kept: vectors, exported encoders."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER_VARIABLE = "DMIN_CACHE"


def default_folder() -> Path:
    """The cache: $DMIN_CACHE, else the user's cache folder."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dmin" / "vectors"

"""Room for the rows of further classes, so that adding one does not copy all the others."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np


class Room:
    """A buffer that rows grow into. Heads that follow each other see longer and longer parts of it; none is overwritten."""

    def __init__(self) -> None:
        self._buffer = np.empty((0, 0), np.float32)
        self._used = 0
        self._lock = threading.Lock()

    def appended(self, rows: Any, more: Any) -> Any:
        """`rows` [n, D] with `more` [m, D] after them; copied where another head has gone on from the same rows."""
        size = len(rows) + len(more)
        with self._lock:
            own = rows.base is self._buffer and len(rows) == self._used
            if not own or size > len(self._buffer):
                self._buffer = np.empty((size + max(1024, size // 4), rows.shape[1]), rows.dtype)
                self._buffer[: len(rows)] = rows
            self._buffer[len(rows) : size] = more
            self._used = size
            return self._buffer[:size]

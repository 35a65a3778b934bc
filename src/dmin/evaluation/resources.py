"""Peak memory of a stretch of work, where the system tells it."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def reset_peak_memory() -> None:
    """Begin a new stretch (Linux); elsewhere the peak is that of the whole process."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


def peak_memory() -> float:
    """Highest resident memory since the last reset, in megabytes."""
    try:
        lines = _STATUS.read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return used / (1024 * 1024 if sys.platform == "darwin" else 1024)

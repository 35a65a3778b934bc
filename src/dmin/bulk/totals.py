"""About how many rows many files have, so that a progress bar can say what is left."""

from __future__ import annotations

from dmin.bulk.inputs import count_rows
from dmin.bulk.remote import Found

_SAMPLE = 32  # files that are looked into; the others count by their size


def estimate_rows(found: Found) -> int | None:
    """About how many rows the files have together; None where that cannot be said without fetching them."""
    if not found.root.is_local:
        return None
    names = sorted(found.files)
    looked = names[:: max(1, len(names) // _SAMPLE)]
    counts = [count_rows((found.root / name).path) for name in looked]
    if any(count is None for count in counts):
        return None
    rows = sum(count or 0 for count in counts)
    seen = sum(found.files[name].size or 0 for name in looked)
    size = sum(info.size or 0 for info in found.files.values())
    return round(rows * size / seen) if seen else None

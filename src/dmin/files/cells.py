"""Cells of CSV files that no spreadsheet takes for a formula."""

from __future__ import annotations

_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four: full width


def safe_cell(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would run it; numbers stay as they are."""
    if not text.startswith(_STARTS) or _is_number(text):
        return text
    return "'" + text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

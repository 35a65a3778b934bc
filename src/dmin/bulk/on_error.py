"""What to do with a row that cannot be used. A file of its own, so that the commands' help need not import the readers."""

from __future__ import annotations

from enum import StrEnum


class OnError(StrEnum):
    """Stop with an error, leave the row out, or keep its place, unanswered."""

    stop = "stop"
    skip = "skip"
    keep = "keep"

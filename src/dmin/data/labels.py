"""Class names as text, and whether labels are words ("card_arrival") or codes ("C17")."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORD = re.compile(r"[^\W\d_]{3,}")
_CODE = re.compile(r"\d")


def name_text(label: Hashable) -> str:
    """The words of a label: "cardArrival/late_fee" -> "card Arrival late fee"."""
    return " ".join(re.split(r"[\s_/.:-]+", _CAMEL.sub(" ", str(label)))).strip()


def is_wordy(label: Hashable) -> bool:
    """Is the label a string of words? Numbers and codes are not."""
    return isinstance(label, str) and bool(_WORD.search(label)) and not _CODE.search(label)


def mostly_words(labels: Iterable[Hashable]) -> bool:
    """Are at least 80 % of the labels words? A few like "no" or "w2" among names do not matter."""
    flags = [is_wordy(label) for label in labels]
    return bool(flags) and sum(flags) >= 0.8 * len(flags)

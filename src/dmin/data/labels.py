"""Class names as text: "card_arrival" says something, "C17" does not."""

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
    """Is the label made of words? Numbers and codes are not, nor is anything that is no string."""
    return isinstance(label, str) and bool(_WORD.search(label)) and not _CODE.search(label)


def mostly_words(labels: Iterable[Hashable]) -> bool:
    """Are the labels of a classifier words? One "no" or "w2" among a hundred names is a name too."""
    flags = [is_wordy(label) for label in labels]
    return bool(flags) and sum(flags) >= 0.8 * len(flags)

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


def near_misses(labels: Iterable[str], classes: Iterable[str]) -> dict[str, str]:
    """Label -> class, for labels that are no class but one letter off one, or written in other case or signs.

    Codes are no words: "C11" beside "C12" is another class, so a difference in digits does not count.
    """
    known = list(classes)
    plain = {_plain_label(label): label for label in reversed(known)}
    found = {}
    for label in dict.fromkeys(labels):
        if label in known:
            continue
        written = _plain_label(label)
        near = plain.get(written) or next((plain[other] for other in plain if one_letter_off(written, other)), None)
        if near is not None:
            found[label] = near
    return found


def one_letter_off(one: str, other: str) -> bool:
    """Do two words differ by one letter (added, lost, exchanged), or two neighbours swapped? Short words never do."""
    if abs(len(one) - len(other)) > 1 or min(len(one), len(other)) < 4 or one == other:
        return False
    start = next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    rest, others = one[start:], other[start:]
    if rest[1:] == others[1:] or rest[1:] == others or rest == others[1:]:
        return not any(letter.isdigit() for letter in rest[:1] + others[:1])
    return rest[:2] == others[:2][::-1] and rest[2:] == others[2:] and rest[:2].isalpha()


def _plain_label(label: str) -> str:
    return name_text(label).lower()

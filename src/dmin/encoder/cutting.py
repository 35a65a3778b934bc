"""Long texts cut by characters before they are tokenised, between words, so that their first tokens stay the same."""

from __future__ import annotations

import re

MOST_CHARACTERS = 1 << 20  # of one text that are looked at, at most
_PER_TOKEN = 64  # far more characters than a token of any language has
_SPACE = re.compile(r"\s\S*\Z")
_LAST = 4096  # characters at the cut in which a space is looked for


def window(tokens: int) -> int:
    """Characters that hold so many tokens, and many more in ordinary text."""
    return tokens * _PER_TOKEN


def beginning(text: str, characters: int, *, from_left: bool = False) -> str:
    """At most so many characters of a text: its beginning, or its end where tokens are cut from the left."""
    most = min(characters, MOST_CHARACTERS)
    if len(text) <= most:
        return text
    if from_left:
        return beginning(text[-most - 1 :][::-1], most)[::-1]
    shown = text[:most]
    if text[most].isspace():
        return shown
    space = _SPACE.search(shown, max(0, most - _LAST))
    return shown[: space.start()] if space and shown[: space.start()].strip() else shown

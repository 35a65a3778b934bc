"""Which part of a text an encoder cannot read: words of unknown tokens, or spelled in letters of another script.

An English vocabulary holds the letters of other scripts, but no word of them (15 longer pieces in all, endings of names): a
Russian word becomes a row of single letters, which carry no meaning, and a Chinese character or an emoji mostly the unknown
token. Languages in Latin letters cannot be told from English in this way.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dmin.encoder.text_encoder import TextEncoder

# From this part of unreadable words on, a text counts as one that the encoder cannot read.
UNREADABLE = 0.5
# A vocabulary with a larger part of tokens in other scripts is made for them: there, single characters are words.
OTHER_SCRIPTS = 0.2
_WARNED: set[str] = set()  # encoders whose limits a warning told of
_MARKS = ("##", "▁", "Ġ")  # of pieces that continue a word, or begin one


class Reader:
    """Finds what a tokenizer cannot read.

    Args:
        tokenizer: a `tokenizers.Tokenizer`.
        unknown: its unknown token; None for a tokenizer that knows every byte.
    """

    def __init__(self, tokenizer: Any, unknown: str | None) -> None:
        self.tokenizer, self.unknown = tokenizer, unknown
        vocabulary = tokenizer.get_vocab()
        foreign = sum(not token.isascii() and any(map(_is_foreign, _letters(token))) for token in vocabulary)
        self.knows_scripts = foreign > OTHER_SCRIPTS * len(vocabulary)

    def unreadable(self, texts: Sequence[str]) -> list[float]:
        """Part of each text's words that cannot be read, from 0 to 1; punctuation counts for nothing."""
        encodings = self.tokenizer.encode_batch(list(texts), add_special_tokens=False) if texts else []
        return [self._part(encoding.tokens, encoding.word_ids) for encoding in encodings]

    def _part(self, tokens: Sequence[str], words: Sequence[int | None]) -> float:
        pieces: Counter[int] = Counter()  # of each word
        foreign: Counter[int] = Counter()  # those in letters of another script
        unknown: set[int] = set()
        for token, word in zip(tokens, words, strict=True):
            if word is None:
                continue
            if token == self.unknown:
                unknown.add(word)
                pieces[word] += 1
            elif _counts(token):
                pieces[word] += 1
                foreign[word] += not self.knows_scripts and any(map(_is_foreign, _letters(token)))
        lost = sum(word in unknown or 2 * foreign[word] > count for word, count in pieces.items())
        return lost / len(pieces) if pieces else 0.0


def cannot_read(encoder: TextEncoder, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which texts an encoder cannot read [n]; warns of them, once per encoder, with the way out."""
    found = np.array(encoder.unreadable(texts) if texts else [], dtype=float) >= UNREADABLE
    if found.any() and encoder.name not in _WARNED:
        _WARNED.add(encoder.name)
        text = texts[int(found.argmax())]
        warnings.warn(
            f"the encoder {encoder.name!r} cannot read texts like {text[:40]!r}, so what is said about them means little: "
            "it knows no words of their script. Give a multilingual encoder: encoder=... in Python, --encoder for commands "
            "(docs/how-to/encoders.md). Said once",
            stacklevel=5,
        )
    return found


def _letters(token: str) -> str:
    for mark in _MARKS:
        token = token.removeprefix(mark)
    return token


def _counts(token: str) -> bool:
    """Does a piece hold a letter or a digit, not punctuation alone?"""
    return any(unicodedata.category(character)[0] in "LNM" for character in _letters(token))


@cache
def _is_foreign(character: str) -> bool:
    """True for a letter, or a mark of one, that is not Latin."""
    if character.isascii() or unicodedata.category(character)[0] not in "LM":
        return False
    return not unicodedata.name(character, "").startswith(("LATIN", "MODIFIER", "COMBINING"))

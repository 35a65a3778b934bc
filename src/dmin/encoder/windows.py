"""Texts that are longer than an encoder's limit: cut, or read in windows whose vectors are averaged."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from dmin.encoder.cutting import MOST_CHARACTERS, beginning, window
from dmin.encoder.text_encoder import FloatArray, unit

MOST_WINDOWS = 8  # of one text; what is beyond them is not read


class TokenLimit:
    """Token ids of texts within a length limit. Works on the package tokenizers alone.

    Args:
        tokenizer: a `tokenizers.Tokenizer`. Its own truncation and padding are switched off here, once, and must not be
            touched again: they are state that all threads of a process share.
        max_length: tokens of a text or of a window, special tokens counted.

    Several threads may use it at the same time.
    """

    def __init__(self, tokenizer: Any, max_length: int) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.tokenizer = tokenizer
        self.max_length = max_length
        self._warned = False

    @property
    def room(self) -> int:
        """Tokens of a window beside the special ones."""
        return max(0, self.max_length - int(self.tokenizer.num_special_tokens_to_add(False)))

    def cut(self, texts: Sequence[str], side: str = "right") -> list[list[int]]:
        """Ids of each text, cut to the limit; a warning gives the number of cut texts, once.

        The words are cut first, so that [CLS] and [SEP] stay.
        """
        # Tokens of a text of megabytes would take a hundred times its size: as many characters as are enough come first.
        shown = [beginning(text, window(self.max_length), from_left=side == "left") for text in texts]
        rows: list[list[int]] = [encoding.ids for encoding in self._encodings(shown)]
        long = 0
        for index, row in enumerate(rows):
            if len(row) > self.max_length:
                rows[index], was_cut = self._cut(shown[index], side), True
            elif len(shown[index]) < len(texts[index]):
                rows[index], was_cut = self._cut_wider(texts[index], side)
            else:
                was_cut = False
            long += was_cut
        self._warn(long, len(texts), self.max_length)
        return rows

    def _cut(self, text: str, side: str) -> list[int]:
        words = self.tokenizer.encode(text, add_special_tokens=False)
        words.truncate(self.room, direction=side)
        found: list[int] = self.tokenizer.post_process(words).ids
        return found

    def _cut_wider(self, text: str, side: str) -> tuple[list[int], bool]:
        """Token ids of a text whose first characters hold few tokens: of more of them, up to a bound. Was it cut?"""
        characters = window(self.max_length)
        while True:
            characters *= 4
            shown = beginning(text, characters, from_left=side == "left")
            ids: list[int] = self.tokenizer.encode(shown).ids
            if len(ids) > self.max_length:
                return self._cut(shown, side), True
            if len(shown) == len(text) or characters >= MOST_CHARACTERS:
                return ids, len(shown) < len(text)

    def windows(self, texts: Sequence[str]) -> list[list[list[int]]]:
        """Ids of each text's windows, one for a text within the limit.

        A long text is divided into as few windows as the limit allows, all of about the same size and without overlap, so
        that each may count the same. Beyond `MOST_WINDOWS` it is cut, with one warning.
        """
        most = self.max_length + (MOST_WINDOWS - 1) * self.room
        shown = [beginning(text, window(most)) for text in texts]
        encodings = self._encodings(shown)
        pairs = list(zip(shown, encodings, texts, strict=True))
        cut = sum(len(encoding.ids) > most or len(part) < len(text) for part, encoding, text in pairs)
        self._warn(cut, len(texts), most)
        return [
            [encoding.ids] if len(encoding.ids) <= self.max_length else self._divide(part)
            for part, encoding, _ in pairs
        ]

    def _encodings(self, texts: Sequence[str]) -> list[Any]:
        return list(self.tokenizer.encode_batch_fast(list(texts))) if texts else []

    def _divide(self, text: str) -> list[list[int]]:
        """The windows of one long text, each between its special tokens."""
        room = max(1, self.room)
        words = self.tokenizer.encode(text, add_special_tokens=False)
        words.truncate(MOST_WINDOWS * room)
        count = len(words.ids)
        words.truncate(math.ceil(count / math.ceil(count / room)))
        done = self.tokenizer.post_process(words)
        return [done.ids, *(part.ids for part in done.overflowing)]

    def _warn(self, cut: int, texts: int, limit: int) -> None:
        if cut and not self._warned:
            self._warned = True
            warnings.warn(f"{cut} of {texts} texts are longer than {limit} tokens and were cut", stacklevel=5)


def average_windows(vectors: FloatArray, counts: Sequence[int]) -> FloatArray:
    """One vector per text [n, d] from those of its windows [sum(counts), d], in order.

    The direction is that of the mean of the windows' unit vectors, the norm the mean of their norms: 1 where all have 1.
    A text of one window keeps its vector bit for bit.
    """
    if len(counts) == len(vectors):
        return vectors
    found = np.empty((len(counts), vectors.shape[1]), np.float32)
    end = 0
    for row, count in enumerate(counts):
        part, end = vectors[end : end + count], end + count  # [windows, d]
        if count == 1:
            found[row] = part[0]
        else:
            norm = np.linalg.norm(part, axis=1).mean()
            found[row] = norm * unit(unit(part).mean(axis=0, keepdims=True))[0]
    return found

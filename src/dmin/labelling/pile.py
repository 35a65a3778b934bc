"""`Pile`: unlabelled texts from a file, read in bounded memory, and the digest that names them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dmin.data.columns import ENCODING, TEXT, Source
from dmin.data.labelled import SUFFIXES
from dmin.data.readers import BadRow, bounded_lines, check_encoding, open_text, read_format
from dmin.errors import DataError, one_line

MOST = 200_000  # texts kept in memory; a larger pile is sampled
LONGEST = 20_000  # characters of a text that are kept: no encoder reads more


@dataclass(frozen=True)
class Pile:
    """Unlabelled texts in the order of their file.

    Args:
        texts: the texts, none empty.
        rows: the row of each text in its file, counted as the reader counts.
        digest: SHA-256 over all readable texts of the file, also those that the sample left out.
        total: readable texts in the file.
        unreadable: rows that hold no text an encoder can read (empty, not a string, broken characters).
    """

    texts: tuple[str, ...]
    rows: tuple[int, ...]
    digest: str
    total: int
    unreadable: tuple[int, ...] = ()

    @property
    def notes(self) -> list[str]:
        """What a person should know about how the pile was read; empty when there is nothing."""
        found = []
        if self.unreadable:
            shown = ", ".join(map(str, self.unreadable[:5])) + (", ..." if len(self.unreadable) > 5 else "")
            found.append(f"{len(self.unreadable)} rows hold no readable text and are left out: {shown}")
        if len(self.texts) < self.total:
            found.append(f"{self.total} texts are more than --most {len(self.texts)}: a seeded sample is used")
        return found


def pile_of(texts: Iterable[Any], *, most: int = MOST, seed: int = 0) -> Pile:
    """Gather texts that are in memory or come one by one; see `read_pile` for a file.

    Raises:
        DataError: when there is no readable text at all.
    """
    if isinstance(texts, str):
        raise DataError(f"the pile is one string ({texts[:40]!r}): a list of texts is needed")
    return _gather(enumerate(texts), most, seed)


def read_pile(path: Path, *, column: str = TEXT, encoding: str = ENCODING, most: int = MOST, seed: int = 0) -> Pile:
    """Read the texts of a CSV, TSV, JSONL, JSON, YAML or Parquet file, or the lines of a .txt file."""
    try:
        return _gather(_values(path, column, encoding), most, seed)
    except DataError as error:
        raise error if str(path) in str(error) else DataError(f"{path}: {error}") from error


def _gather(values: Iterable[tuple[int, Any]], most: int, seed: int) -> Pile:
    """Beyond `most` a seeded sample (reservoir) is kept, so that memory is bounded."""
    if most < 1:
        raise DataError(f"--most {most}: at least 1 text must be kept")
    generator = np.random.default_rng(seed)
    digest = hashlib.sha256()
    kept: list[tuple[int, str]] = []
    unreadable: list[int] = []
    total = 0
    for row, value in values:
        text = readable(value)
        if text is None:
            unreadable.append(row)
            continue
        data = text.encode("utf-8")
        digest.update(f"{len(data)}:".encode() + data)
        total += 1
        if len(kept) < most:
            kept.append((row, text))
        elif (place := int(generator.integers(total))) < most:
            kept[place] = (row, text)
    if not kept:
        what = f"none of its {len(unreadable)} rows holds a readable text" if unreadable else "it holds no texts"
        raise DataError(f"the pile is empty: {what}")
    kept.sort()
    texts, rows = tuple(text for _, text in kept), tuple(row for row, _ in kept)
    return Pile(texts, rows, digest.hexdigest(), total, tuple(unreadable))


def readable(value: Any) -> str | None:
    """The text as an encoder can read it; None for anything empty, not a string, or with broken characters."""
    if not isinstance(value, str):
        return None
    text = value.strip()[:LONGEST]
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate: no tokenizer takes it
        return None
    return text if any(character.isprintable() and not character.isspace() for character in text) else None


def _values(path: Path, column: str, encoding: str) -> Iterator[tuple[int, Any]]:
    """(row, value of the text column) of each row; a row that cannot be used has None."""
    source = Source.parse(str(path), column, encoding=encoding)
    if source.path.suffix.lower() == ".txt":
        yield from _lines(source.path, source.encoding)
        return
    if source.path.suffix.lower() not in SUFFIXES:
        raise DataError(f"{path}: unknown kind of file; use .txt, {', '.join(sorted(SUFFIXES))}")
    chosen: str | None = None
    for number, record in read_format(source.path, source.encoding):
        if isinstance(record, BadRow):
            yield number, None
            continue
        if chosen is None or chosen not in record:
            chosen = source.text_column(list(record), f"{source.path}, row {number}")
        yield number, record[chosen]


def _lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    try:
        with open_text(path, check_encoding(encoding)) as lines:
            yield from enumerate(bounded_lines(lines, path), 1)
    except OSError as error:
        raise DataError(f"cannot read {path}: {one_line(error)}") from error

"""Rows of texts from a file of any size or a stream; what to do with a row that cannot be used."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, TextIO

from dmin.bulk.on_error import OnError
from dmin.data.columns import ENCODING, TEXT, Source
from dmin.data.readers import (
    BadRow,
    bounded_lines,
    check_encoding,
    is_text,
    name_shown,
    open_text,
    read_format,
)
from dmin.errors import DataError, one_line
from dmin.files import short

Record = dict[str, Any]
_NAMED = 3  # bad rows that the closing note names
_PIECE = 1 << 20  # bytes read at once while rows are counted
_SAMPLE = 256 << 20  # bytes of a file whose rows are counted; the rest is estimated


@dataclass(frozen=True, slots=True)
class InputRow:
    """A row: its columns, its text (None where it is empty), and why it cannot be used, if so."""

    number: int
    record: Record
    text: str | None
    error: str | None = None


@dataclass
class BadRows:
    """Counts the rows of one file that cannot be used."""

    source: str
    on_error: OnError
    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, number: int, reason: str) -> None:
        """Count a row; with `stop`, raise its error."""
        if self.on_error is OnError.stop:
            raise DataError(
                f"{self.source}, row {number}: {reason} (--on-error skip leaves such rows out, keep keeps their place)"
            )
        self.count += 1
        if len(self.first) < _NAMED:
            self.first.append(f"row {number}: {reason}")

    def say(self) -> None:
        """Warn of what was counted."""
        if self.count:
            done = "left out" if self.on_error is OnError.skip else "kept without an answer"
            more = "; ..." if self.count > len(self.first) else ""
            rows = "1 row" if self.count == 1 else f"{self.count} rows"
            warnings.warn(
                f"{self.source}: {rows} could not be used, {done} ({'; '.join(self.first)}{more})", stacklevel=3
            )


def read_texts(
    source: str | Path | Source | IO[str],
    column: str = TEXT,
    *,
    encoding: str = ENCODING,
    on_error: OnError = OnError.stop,
) -> Iterator[InputRow]:
    """Yield the rows of a file, one at a time; each line of plain text (.txt, a stream) is a row of one column.

    Args:
        source: a file, which may name its column and encoding (`mails.csv:text=body`), or an open stream.
        column: the column of the texts, where `source` does not say it.
        encoding: of a text file, likewise.
        on_error: what to do with a row that cannot be used.

    Raises:
        DataError: for what is wrong with the whole file, or with a row where `on_error` is `stop`.
    """
    if not isinstance(source, str | Path | Source):
        bad = BadRows("standard input", on_error)
        yield from _checked(_lines(source, column, "standard input"), bad, column)
        bad.say()
        return
    given = source if isinstance(source, Source) else Source.parse(source, column, encoding=encoding)
    bad = BadRows(given.name, on_error)
    if given.path.suffix.lower() == ".txt":
        yield from _checked(_text_file(given), bad, given.text)
    else:
        yield from _checked(read_format(given.path, given.encoding), bad, given)
    bad.say()


def standard_input(encoding: str = ENCODING) -> IO[str]:
    """Standard input in an encoding; bytes that are not text in it become rows that cannot be used."""
    binary = getattr(sys.stdin, "buffer", None)
    if binary is None:
        return sys.stdin
    name = check_encoding(encoding)
    return TextIOWrapper(binary, "utf-8-sig" if name == "utf-8" else name, errors="surrogateescape", newline="")


def count_rows(source: str | Path) -> int | None:
    """About how many rows a file has, for a progress bar; None where that cannot be said."""
    path = Source.parse(source).path
    try:
        if path.suffix.lower() == ".parquet":
            from pyarrow import parquet

            return int(parquet.read_metadata(path).num_rows)
        if path.suffix.lower() not in (".txt", ".jsonl", ".csv", ".tsv"):
            return None
        size, seen, lines = path.stat().st_size, 0, 0
        with path.open("rb") as file:
            while seen < _SAMPLE and (piece := file.read(_PIECE)):
                seen, lines = seen + len(piece), lines + piece.count(b"\n")
    except Exception:  # noqa: BLE001 (reading the file says what is wrong with it)
        return None
    header = path.suffix.lower() in (".csv", ".tsv")
    return max(0, round(lines * size / max(1, seen)) - header)


def _text_file(source: Source) -> Iterator[tuple[int, Record | BadRow]]:
    try:
        if not source.path.is_file():
            raise DataError(f"no such file: {source.path}")
        with open_text(source.path, check_encoding(source.encoding)) as lines:
            yield from _lines(lines, source.text, source.name)
    except OSError as error:
        raise DataError(f"cannot read {source.path}: {one_line(error)}") from error


def _lines(lines: IO[str], column: str, name: str) -> Iterator[tuple[int, Record | BadRow]]:
    try:
        for number, line in enumerate(bounded_lines(_as_text(lines), name), 1):
            text = line.rstrip("\r\n")
            record = {column: text}
            yield (
                number,
                record if is_text(text) else BadRow("bytes that are not text in this encoding: see --encoding"),
            )
    except UnicodeError as error:  # an encoding that cannot go on after an error
        raise DataError(f"{name} is not text in this encoding: {one_line(error)}; see --encoding") from error


def _as_text(lines: IO[str]) -> TextIO:
    return lines  # type: ignore[return-value]  # of a stream, only `readline` is used


def _checked(rows: Iterable[tuple[int, Any]], bad: BadRows, column: str | Source) -> Iterator[InputRow]:
    """Rows with their texts, those that cannot be used as `bad` says.

    A row that is kept has the columns of the others, to fit into a table: those before the first good row wait for it.
    """
    columns: dict[str, None] | None = None
    waiting: list[tuple[int, str]] = []
    chosen = column if isinstance(column, str) else TEXT
    keep = bad.on_error is OnError.keep
    for number, row in rows:
        record: Mapping[str, Any] | None = row.record if isinstance(row, BadRow) else row
        if record is not None and columns is None:
            columns = dict.fromkeys(record)
            if isinstance(column, Source):
                chosen = column.text_column(list(columns), f"{column.name}, row {number}")
            for place, why in waiting:
                yield InputRow(place, dict(columns), None, why)
        reason = row.reason if isinstance(row, BadRow) else _reason(row, chosen)
        if reason is None and record is not None:
            text = record[chosen]
            yield InputRow(number, dict(record), text if text is not None and text.strip() else None)
            continue
        bad.add(number, str(reason))
        if keep and columns is None:
            waiting.append((number, str(reason)))
        elif keep:
            usable = dict(record) if record is not None and not isinstance(row, BadRow) else dict(columns or {})
            yield InputRow(number, usable, None, reason)
    if columns is None:
        for place, why in waiting:
            yield InputRow(place, {chosen: None}, None, why)


def _reason(record: Record, column: str) -> str | None:
    """Why a record has no usable text; None where it has one, or an empty one."""
    if column not in record:
        return f"no column {short(column)}; it has {', '.join(map(name_shown, list(record)[:10]))}"
    value = record[column]
    if value is None or isinstance(value, str):
        return None
    return f"the text is {short(value)} ({type(value).__name__}), not a string"

"""Rows of files of every kind, with bounds: JSONL, CSV, TSV, YAML, JSON, Parquet. The one place that opens text files.

A row that cannot be used (bytes that are not text, broken JSON, too many columns) is a `BadRow`, so that whoever reads can
stop at it or go on. What is wrong with a whole file is a `DataError`.
"""

from __future__ import annotations

import codecs
import csv
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from dmin.data.yaml_documents import parse_yaml
from dmin.errors import DataError, one_line
from dmin.files import short

MOST_WHOLE = 256 << 20  # bytes of a file that is read at once (YAML, JSON)
MOST_CELL = 64 << 20  # characters of one cell of a CSV file, or of one line of JSONL
_SAMPLE = 1 << 16  # bytes that are looked at for another encoding
_TABLES = (".xlsx", ".xls", ".ods", ".numbers")
_MARKS = {  # byte order marks; the longer ones first, because one begins like another
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used, and why; its columns, where it has any, since not all of them need be wrong."""

    reason: str
    record: Mapping[str, Any] | None = None


Row = tuple[int, "Mapping[str, Any] | BadRow"]  # (number in the file, columns)


def read_format(path: Path, encoding: str = "utf-8") -> Iterator[Row]:
    """Yield (number, columns or `BadRow`) of each row of a file, one at a time.

    Raises:
        DataError: what is wrong with the file as a whole.
    """
    suffix = path.suffix.lower()
    if suffix in _TABLES:
        raise DataError(f"{path} is a spreadsheet: save it as CSV (in the program that made it: Save as, CSV UTF-8)")
    reader = READERS.get(suffix)
    if reader is None:
        raise DataError(f"{path}: unknown kind of file; use {', '.join(sorted(READERS))}")
    try:
        if not path.is_file():
            raise DataError(f"no such file: {path}" if not path.exists() else f"{path} is not a file")
        yield from reader(path, check_encoding(encoding))
    except OSError as error:
        raise DataError(f"cannot read {path}: {foreign_line(error)}") from error
    except UnicodeError as error:
        raise DataError(
            f"{path} is not {encoding} text: {foreign_line(error)}. Give --encoding, for example windows-1252 or utf-16"
        ) from error


def check_encoding(encoding: str) -> str:
    """The encoding's own name; an unknown one, or one that is not of texts, is a `DataError`."""
    try:
        "a".encode(encoding)  # rot13 and zip are codecs, but not of texts
        return codecs.lookup(encoding).name
    except (LookupError, ValueError) as error:
        raise DataError(f"unknown encoding {encoding!r}: for example utf-8, windows-1252, utf-16") from error


def open_text(path: Path, encoding: str) -> TextIO:
    """Open a text file; bytes that are not text become lone surrogates, which `_row` finds."""
    with path.open("rb") as file:
        start = file.read(_SAMPLE)
    marked = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
    if marked and marked != "utf-8-sig" and not encoding.startswith(marked):
        raise DataError(f"{path} is {marked.upper()}, not {encoding}: give --encoding {marked}")
    if encoding == "utf-8":
        encoding = "utf-8-sig"
    elif not encoding.startswith(("utf", "ascii")) and _looks_like_utf8(start):
        warnings.warn(
            f"{path} looks like UTF-8 but is read as {encoding}: if letters come out wrong, give {path}:encoding=utf-8",
            stacklevel=6,
        )
    return path.open(encoding=encoding, errors="surrogateescape", newline="")


def _looks_like_utf8(start: bytes) -> bool:
    """Bytes beyond ASCII that are UTF-8: texts of another encoding are that only by a rare accident."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # which does not mind a character cut at the end
    except UnicodeDecodeError:
        return False
    return not start.isascii()


def bounded_lines(lines: TextIO, source: Path | str) -> Iterator[str]:
    """The lines of a file, none of them longer than memory bears."""
    number = 0
    while line := lines.readline(MOST_CELL):
        number += 1
        if len(line) >= MOST_CELL:
            raise DataError(f"{source}, row {number}: longer than {MOST_CELL:,} characters; is it one row per line?")
        yield line


def _jsonl(path: Path, encoding: str) -> Iterator[Row]:
    with open_text(path, encoding) as lines:
        for number, line in enumerate(bounded_lines(lines, path), 1):
            if not line.strip():
                continue
            try:
                record = _parse_json(line)
            except (ValueError, RecursionError) as error:
                yield number, BadRow(f"not valid JSON ({_json_reason(error)})")
                continue
            if not isinstance(record, dict):
                yield number, BadRow('an object {"text": ..., "label": ...} is needed')
            else:
                yield _row(number, record)


def _delimited(path: Path, encoding: str) -> Iterator[Row]:
    csv.field_size_limit(MOST_CELL)
    with open_text(path, encoding) as lines:
        header = lines.readline(1 << 20)
        delimiter = "\t" if path.suffix.lower() == ".tsv" else _delimiter(header)
        lines.seek(0)
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        columns: list[str] | None = None
        before = 0
        for number, cells in enumerate(_cells(rows, path), 1):  # as a spreadsheet counts, the header first
            first, before = before + 1, rows.line_num
            lines_read = f" (lines {first} to {before}: is a quote missing?)" if before > first else ""
            if isinstance(cells, BadRow):
                if columns is None:
                    raise DataError(f"{path}, line {before}: {cells.reason}")
                yield number, BadRow(cells.reason + lines_read)
            elif not cells:
                continue  # a blank line
            elif columns is None:
                columns = _columns(path, cells)
            elif len(cells) != len(columns):
                yield number, BadRow(f"{len(cells)} columns, not {len(columns)} like the header{lines_read}")
            else:
                yield _row(number, dict(zip(columns, cells, strict=True)))


def _cells(rows: Any, path: Path) -> Iterator[list[str] | BadRow]:
    """The cells of each row of a `csv.reader`; a row that it cannot read is a `BadRow`."""
    while True:
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end" in str(error):  # a quote that is never closed hides all rows after it
                raise DataError(f"{path}, line {rows.line_num}: {error}; a quote is not closed") from error
            cells = BadRow(foreign_line(error))
        yield cells


def _columns(path: Path, cells: list[str]) -> list[str]:
    found = [cell.strip() for cell in cells]
    if not all(map(is_text, found)):
        raise DataError(f"{path}: the names of its columns are not text in this encoding: see --encoding")
    twice = sorted({cell for cell in found if found.count(cell) > 1})
    if twice:
        raise DataError(f"{path}: the column {twice[0]!r} is there {found.count(twice[0])} times; rename or remove one")
    return found


def _delimiter(header: str) -> str:
    """The separator that stands in the header most often; a comma where there is none."""
    outside = "".join(header.split('"')[::2])
    return max(",;\t|", key=lambda sign: (outside.count(sign), sign == ","))


def _whole(parse: Callable[[str, Path], Any]) -> Callable[[Path, str], Iterator[Row]]:
    def read(path: Path, encoding: str) -> Iterator[Row]:
        size = path.stat().st_size
        if size > MOST_WHOLE:
            raise DataError(f"{path} has {size:,} bytes; files of this kind may have {MOST_WHOLE:,}: use JSONL or CSV")
        with open_text(path, encoding) as file:
            content = parse(file.read(), path)
        if isinstance(content, list):
            for number, record in enumerate(content, 1):
                if isinstance(record, dict):
                    yield _row(number, record)
                else:
                    yield number, BadRow(f"a mapping with text and label is needed, not {short(record)}")
        elif isinstance(content, dict):
            yield from _mapping_rows(content, path)
        else:
            raise DataError(f"{path}: a mapping of labels to lists of texts is needed, not {short(content)}")

    return read


def _mapping_rows(content: Mapping[Any, Any], path: Path) -> Iterator[Row]:
    """`{label: [texts]}` as rows with the columns text and label."""
    number = 0
    for label, texts in content.items():
        if not isinstance(label, str):
            raise DataError(f"{path}: the label {short(label)} is read as a {type(label).__name__}; put it in quotes")
        if not isinstance(texts, list):
            raise DataError(f"{path}: class {label!r} holds {short(texts)}; a list of texts is needed")
        if not texts:
            raise DataError(f"{path}: class {label!r} has no example")
        for text in texts:
            number += 1
            if isinstance(text, dict | list):
                yield number, BadRow(f"class {label!r} holds {short(text)}; one string is needed")
            else:
                yield _row(number, {"text": text, "label": label})


def _json_document(text: str, path: Path) -> Any:
    try:
        return _parse_json(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {_json_reason(error)}") from error


def _parse_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_no_key_twice)


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is there twice, and one would be lost")
    return found


def _json_reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else foreign_line(error)


def _parquet(path: Path, encoding: str) -> Iterator[Row]:
    del encoding  # Parquet has its own
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise DataError(f"{path}: reading Parquet needs an extra: pip install 'dmin[data]'") from error
    number = 0
    try:
        file = parquet.ParquetFile(path)
        for batch in file.iter_batches():
            for record in _parquet_records(batch):
                number += 1
                yield (number, record) if isinstance(record, BadRow) else _row(number, record)
    except (ArrowException, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a readable Parquet file: {foreign_line(error)}") from error


def _parquet_records(batch: Any) -> Iterator[Mapping[str, Any] | BadRow]:
    try:
        yield from batch.to_pylist()
    except (
        UnicodeDecodeError,
        ValueError,
        OverflowError,
    ):  # a text that is no UTF-8, a date beyond Python's: row by row
        for place in range(batch.num_rows):
            try:
                (record,) = batch.slice(place, 1).to_pylist()
            except (UnicodeDecodeError, ValueError, OverflowError) as error:
                record = BadRow(f"a value cannot be read: {foreign_line(error, 100)}")
            yield record


def _row(number: int, record: Mapping[str, Any]) -> Row:
    """The row, or why it cannot be used: bytes, or characters that are none."""
    for column, value in record.items():
        if not isinstance(column, str):
            return number, BadRow(f"the column {short(column)} is a {type(column).__name__}, not a name")
        if not is_text(column):
            return number, BadRow(f"the column {short(column)} holds bytes that are not text in this encoding")
        if (reason := _wrong_value(value)) is not None:
            return number, BadRow(f"{name_shown(column)} holds {reason}", record)
    return number, record


def _wrong_value(value: Any) -> str | None:
    """Why a value, or one inside of it, cannot be written as text again; None for what can."""
    if isinstance(value, bytes):
        return "bytes, not text: store the column as strings"
    if isinstance(value, str):
        return None if is_text(value) else "bytes that are not text in this encoding: see --encoding"
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return next((reason for part in inner if (reason := _wrong_value(part)) is not None), None)


def is_text(value: str) -> bool:
    """False where a string holds a lone surrogate, which no encoding can write."""
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def foreign_line(error: BaseException, most: int = 300) -> str:
    """The message of another library's error in one line; it may quote bytes of the file, which are escaped."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in one_line(error, most))


def name_shown(name: str, most: int = 60) -> str:
    """The name of a column in a message: as it is, or quoted where it holds what a terminal would act on."""
    return name if name.isprintable() and len(name) <= most else short(name, most)


READERS: dict[str, Callable[[Path, str], Iterator[Row]]] = {
    ".jsonl": _jsonl,
    ".csv": _delimited,
    ".tsv": _delimited,
    ".yaml": _whole(parse_yaml),
    ".yml": _whole(parse_yaml),
    ".json": _whole(_json_document),
    ".parquet": _parquet,
}

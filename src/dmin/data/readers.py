"""Labelled texts from files: JSONL, CSV, TSV, YAML, JSON, Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from dmin.data.corpus import Corpus
from dmin.data.splits import read_splits
from dmin.errors import DataError, nearest_name, one_line

TEXT, LABEL = "text", "label"


def read_corpus(path: Path, *, text_column: str = TEXT, label_column: str = LABEL, name: str | None = None) -> Corpus:
    """Read a labelled file; `class_splits.json` beside it, if there is one, gives the named class splits.

    Raises:
        DataError: with the file, the row and what is wrong.
    """
    rows = list(read_rows(path, text_column, label_column))
    if not rows:
        raise DataError(f"{path} holds no rows")
    beside = path.parent / "class_splits.json"
    splits = read_splits(beside) if path.stem == "texts" and beside.is_file() else {}
    texts, labels = (tuple(column) for column in zip(*rows, strict=True))
    return Corpus(name or path.stem, texts, labels, splits, next(iter(splits), None))


def read_rows(path: Path, text_column: str = TEXT, label_column: str = LABEL) -> Iterator[tuple[str, str]]:
    """Yield (text, label) of each row of a file."""
    for number, record in read_records(path):
        yield (
            _field(path, number, record, text_column, "--text-column"),
            _field(path, number, record, label_column, "--label-column"),
        )


def read_records(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (row number, columns) of each row of a file, one at a time."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"{path}: unknown kind of file; use {', '.join(sorted(_READERS))}")
    if not path.is_file():
        raise DataError(f"no such file: {path}")
    try:
        yield from reader(path)
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {one_line(error)}") from error


Records = Iterable[tuple[int, Mapping[str, Any]]]


def missing_column(path: Path, number: int, record: Mapping[str, Any], column: str, option: str) -> DataError:
    """Build the error for a column that is not there: the nearest one, and what there is."""
    near = nearest_name(column, record)
    hint = f" (did you mean {near!r}?)" if near else ""
    found = ", ".join(map(str, record))
    return DataError(f"{path}, row {number}: no column {column!r}{hint}; it has {found}. Choose one with {option}")


def _field(path: Path, number: int, record: Mapping[str, Any], column: str, option: str) -> str:
    if column not in record:
        raise missing_column(path, number, record, column, option)
    value = record[column]
    if value is None or (isinstance(value, float) and value != value):
        raise DataError(f"{path}, row {number}: {column} is missing")
    if isinstance(value, bool):
        raise DataError(f"{path}, row {number}: {column} is read as {value} (yes/no, true/false); put it in quotes")
    if isinstance(value, list | dict):
        raise DataError(f"{path}, row {number}: {column} is a {type(value).__name__}; one string is needed")
    text = str(value).strip()
    if not text:
        raise DataError(f"{path}, row {number}: {column} is empty")
    return text


def _jsonl(path: Path) -> Records:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(f"{path}, row {number}: not valid JSON ({error.msg})") from error
            if not isinstance(record, dict):
                raise DataError(f'{path}, row {number}: an object {{"text": ..., "label": ...}} is needed')
            yield number, record


def _delimited(delimiter: str) -> Callable[[Path], Records]:
    def read(path: Path) -> Records:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines, delimiter=delimiter, strict=True)
            try:
                for record in rows:
                    if None in record or None in record.values():
                        columns = len(rows.fieldnames or ())
                        raise DataError(f"{path}, line {rows.line_num}: not {columns} columns like the header")
                    yield rows.line_num, record
            except csv.Error as error:
                raise DataError(f"{path}, line {rows.reader.line_num}: {one_line(error)}") from error

    return read


def _mapping(parse: Callable[[str], Any], failure: type[Exception]) -> Callable[[Path], Records]:
    def read(path: Path) -> Records:
        try:
            content = parse(path.read_text(encoding="utf-8-sig"))
        except failure as error:
            raise DataError(f"{path} cannot be read: {one_line(error)}") from error
        if isinstance(content, list):
            for number, record in enumerate(content, 1):
                if not isinstance(record, dict):
                    raise DataError(f"{path}, item {number}: a mapping with text and label is needed, not {record!r}")
                yield number, record
            return
        if not isinstance(content, dict):
            raise DataError(f"{path}: a mapping of labels to lists of texts is needed")
        for label in content:
            if not isinstance(label, str):
                raise DataError(f"{path}: the label {label!r} is read as a {type(label).__name__}; put it in quotes")
        corpus = Corpus.from_mapping(content, path.name)
        for number, (text, label) in enumerate(zip(corpus.texts, corpus.labels, strict=True), 1):
            yield number, {TEXT: text, LABEL: label}

    return read


def _parquet(path: Path) -> Records:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError as error:
        raise DataError(f"{path}: reading Parquet needs an extra: pip install 'dmin[data]'") from error
    try:
        file = parquet.ParquetFile(path)
    except ArrowInvalid as error:
        raise DataError(f"{path} is not a Parquet file: {one_line(error)}") from error
    number = 0
    for batch in file.iter_batches():
        for record in batch.to_pylist():
            number += 1
            yield number, record


_READERS: dict[str, Callable[[Path], Records]] = {
    ".jsonl": _jsonl,
    ".csv": _delimited(","),
    ".tsv": _delimited("\t"),
    ".yaml": _mapping(yaml.safe_load, yaml.YAMLError),
    ".yml": _mapping(yaml.safe_load, yaml.YAMLError),
    ".json": _mapping(json.loads, json.JSONDecodeError),
    ".parquet": _parquet,
}
SUFFIXES = tuple(_READERS)

"""Labelled texts from files of every kind (see `dmin.data.readers`): columns chosen, every row checked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dmin.data.columns import ENCODING, LABEL, TEXT, Source, missing_column
from dmin.data.corpus import Corpus
from dmin.data.readers import READERS, BadRow, is_text, name_shown, read_format
from dmin.data.splits import read_splits
from dmin.errors import DataError
from dmin.files import short

SUFFIXES = tuple(READERS)


def load_examples(
    path: str | Path, *, text_column: str = TEXT, label_column: str = LABEL, encoding: str = ENCODING
) -> dict[str, list[str]]:
    """Read a file of labelled texts as `{label: [texts]}`, which `FewShotClassifier.fit` takes.

    It reads what the commands' option --examples reads: YAML and JSON with `{label: [texts]}`, CSV, TSV, JSONL, Parquet.

    Args:
        path: the file; its columns can be named with it: `"tickets.csv:text=ticket,label=intent"`.
        text_column: the column of the texts.
        label_column: the column of the labels.
        encoding: of a text file, for example "windows-1252" or "utf-16".

    Raises:
        DataError: with the file, the row and what is wrong.
    """
    return read_corpus(path, text_column=text_column, label_column=label_column, encoding=encoding).examples


def read_corpus(
    path: str | Path | Source,
    *,
    text_column: str = TEXT,
    label_column: str = LABEL,
    encoding: str = ENCODING,
    fallback: bool = False,
    name: str | None = None,
) -> Corpus:
    """Read a labelled file; `class_splits.json` beside it, if there is one, gives the named class splits.

    Args:
        path: the file, with or without its columns; a `Source` says everything.
        text_column: the column of the texts, where `path` does not say it.
        label_column: the column of the labels, likewise.
        encoding: of a text file, likewise.
        fallback: guess a column that was named and is not there (see `Source`).
        name: of the corpus; default: that of the file.

    Raises:
        DataError: with the file, the row and what is wrong.
    """
    if not isinstance(path, Source):
        path = Source.parse(path, text_column, label_column, encoding, fallback=fallback)
    source = path
    file = source.path
    rows = list(read_rows(source))
    if not rows:
        raise DataError(f"{file} holds no rows")
    beside = file.parent / "class_splits.json"
    splits = read_splits(beside) if file.stem == "texts" and beside.is_file() else {}
    texts, labels = (tuple(column) for column in zip(*rows, strict=True))
    return Corpus(name or file.stem, texts, labels, splits, next(iter(splits), None))


def read_rows(source: Source) -> Iterator[tuple[str, str]]:
    """Yield (text, label) of each row of a file, both without white space around them."""
    columns: tuple[str, str] | None = None
    for number, record in read_format(source.path, source.encoding):
        where = f"{source.name}, row {number}"
        if isinstance(record, BadRow):
            if record.record is None:
                raise DataError(f"{where}: {record.reason}")
            record = record.record  # the columns of text and label may be right
        if columns is None:
            found = list(record)
            columns = source.text_column(found, where), source.label_column(found, where)
        for column, kind in zip(columns, ("text", "label"), strict=True):
            if column not in record:
                raise missing_column(where, list(record), column, kind)
        text, label = (cell_text(record[column], column, where) for column in columns)
        yield text, label


def cell_text(value: Any, column: str, where: str) -> str:
    """A text or label of a file, without white space around it; what cannot be one is a `DataError`."""
    column = name_shown(column)
    if value is None or (isinstance(value, float) and value != value):
        raise DataError(f"{where}: {column} is missing")
    if isinstance(value, bool):
        raise DataError(f"{where}: {column} is read as {value} (yes/no, true/false); put it in quotes")
    if isinstance(value, bytes):
        raise DataError(f"{where}: {column} holds bytes, not text: store the column as strings")
    if isinstance(value, str) and not is_text(value):
        raise DataError(f"{where}: {column} holds bytes that are not text in this encoding: see --encoding")
    if isinstance(value, list | dict | tuple):
        raise DataError(f"{where}: {column} is a {type(value).__name__}; one string is needed")
    try:
        text = str(value).strip()
    except ValueError as error:  # a number of thousands of digits
        raise DataError(f"{where}: {column} is {short(value)}; put it in quotes") from error
    if not text:
        raise DataError(f"{where}: {column} is empty")
    return text

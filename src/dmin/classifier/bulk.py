"""Classify files of any size in bounded memory, and go on after a crash without losing or doubling a row.

Answers go to OUTPUT.part, batch by batch; the file gets its name when it is whole. One input row is one output line, so
the number of whole lines says where to go on. Parquet cannot be appended to: its part is JSONL until the end.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from dmin.data.readers import read_records
from dmin.errors import DataError, StorageError

BATCH = 256
OUTPUTS = (".jsonl", ".csv", ".tsv", ".parquet")
_LINES = (".jsonl", ".parquet")  # kinds whose part is JSONL
_ROW_GROUP = 20_000
Answer = Callable[[Sequence[str]], list[dict[str, Any]]]


def read_texts(source: Path | IO[str], column: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """(row, record) of a labelled or unlabelled file; lines of plain text become {column: line}."""
    if not isinstance(source, Path) or source.suffix.lower() == ".txt":
        lines = source if not isinstance(source, Path) else _open_text(source)
        for number, line in enumerate(lines, 1):
            yield number, {column: line.rstrip("\n")}
        return
    for number, record in read_records(source):
        if column not in record:
            raise DataError(f"{source}, row {number}: no column {column!r}; it has {', '.join(map(str, record))}")
        yield number, dict(record)


def classify_file(
    records: Iterator[tuple[int, dict[str, Any]]],
    output: Path,
    answer: Answer,
    *,
    column: str,
    resume: bool = False,
    after_batch: Callable[[int], object] = int,
) -> int:
    """Write each record with its answer; return the number of rows written in all.

    Args:
        records: what `read_texts` gives.
        output: a .jsonl, .csv, .tsv or .parquet file that is not there yet.
        answer: texts -> fields to add, one dict a text.
        column: the column of the texts.
        resume: go on with OUTPUT.part.
        after_batch: told how many rows each batch had.
    """
    kind = output.suffix.lower()
    if kind == ".parquet":
        _need_pyarrow(output)
    if kind not in OUTPUTS:
        raise DataError(f"{output}: output goes to {', '.join(OUTPUTS)}")
    if output.exists():
        raise DataError(f"{output} is there already: choose another --output, or remove it")
    part = output.with_name(output.name + ".part")
    done = _trim(part, kind) if resume and part.is_file() else 0
    rows = done
    try:
        with part.open("a" if done else "w", encoding="utf-8", newline="") as file:
            for _ in islice(records, done):
                pass
            while batch := list(islice(records, BATCH)):
                texts = [_text(number, record.get(column)) for number, record in batch]
                lines = [beside(record, fields) for (_, record), fields in zip(batch, answer(texts), strict=True)]
                file.write(_format(lines, kind, header=rows == 0))
                file.flush()
                os.fsync(file.fileno())
                rows += len(batch)
                after_batch(len(batch))
        if kind == ".parquet":
            _to_parquet(part, output)
        else:
            part.replace(output)
    except OSError as error:
        raise StorageError(
            f"cannot write {output}: {error.strerror or error} ({part.name} is kept: --resume)"
        ) from error
    finally:
        if rows == 0:
            part.unlink(missing_ok=True)  # nothing was answered: nothing to go on with
    return rows


def beside(record: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """A record with its answer; where it has a column of the same name, the answer's is called answer_NAME."""
    return {**record, **{(f"answer_{name}" if name in record else name): value for name, value in fields.items()}}


def _open_text(path: Path) -> Iterator[str]:
    if not path.is_file():
        raise DataError(f"no such file: {path}")
    with path.open(encoding="utf-8-sig") as lines:
        yield from lines


def _text(number: int, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DataError(
            f"row {number}: the text is {'empty' if value in ('', None) or isinstance(value, str) else repr(value)}"
        )
    return value


def _format(lines: Sequence[dict[str, Any]], kind: str, *, header: bool) -> str:
    if kind in _LINES:
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(lines[0]), delimiter="," if kind == ".csv" else "\t", lineterminator="\n")
    if header:
        writer.writeheader()
    # A line break inside a field would break the count of rows that a resume relies on.
    writer.writerows({key: _cell(value) for key, value in line.items()} for line in lines)
    return buffer.getvalue()


def _trim(part: Path, kind: str) -> int:
    """Cut a half-written last line off; return the number of whole rows."""
    rows = whole = 0
    with part.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                rows, whole = rows + 1, whole + len(line)
    os.truncate(part, whole)
    return max(0, rows - (kind not in _LINES))


def _cell(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)
    return " ".join(text.splitlines())


def _need_pyarrow(output: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise DataError(f"{output}: writing Parquet needs an extra: pip install 'dmin[data]'") from error


def _to_parquet(part: Path, output: Path) -> None:
    """Turn whole lines of JSON into a Parquet file, in bounded memory: once for the columns' types, once to write."""
    import pyarrow
    from pyarrow import parquet

    def groups() -> Iterator[list[dict[str, Any]]]:
        with part.open(encoding="utf-8") as lines:
            while rows := [json.loads(line) for line in islice(lines, _ROW_GROUP)]:
                yield rows

    schemas = [pyarrow.Table.from_pylist(rows).schema for rows in groups()]
    schema = pyarrow.unify_schemas(schemas, promote_options="permissive") if schemas else pyarrow.schema([])
    scratch = output.with_name(output.name + ".writing")
    try:
        with parquet.ParquetWriter(scratch, schema) as writer:
            for rows in groups():
                writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
        scratch.replace(output)
        part.unlink()
    finally:
        scratch.unlink(missing_ok=True)

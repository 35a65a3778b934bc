"""Answers as lines of JSON or CSV, and as Parquet; cells that a spreadsheet would run as a formula are made harmless."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from dmin.bulk.inputs import Record
from dmin.errors import DataError
from dmin.files import safe_cell

OUTPUTS = (".jsonl", ".csv", ".tsv", ".parquet")
LINES = (".jsonl", ".parquet")  # kinds whose part is JSONL
_ROW_GROUP = 20_000


def json_line(line: Any) -> str:
    """A line of JSONL; values without a JSON type (dates, decimals) as text."""
    return json.dumps(line, ensure_ascii=False, default=str)


def table_row(line: Mapping[str, Any], *, raw: bool) -> dict[str, str]:
    """A row of a CSV or TSV file; unless `raw`, no cell and no name of a column begins a formula.

    Line breaks become spaces: one inside of a cell would break the count of rows that a resume relies on.
    """
    row = {name: _cell(value) for name, value in line.items()}
    return row if raw else {safe_cell(name): safe_cell(cell) for name, cell in row.items()}


def format_lines(lines: Sequence[Mapping[str, Any]], kind: str, columns: Sequence[str], *, header: bool) -> str:
    """Lines as they are written to a file of a kind; those of a table come from `table_row`."""
    if kind in LINES:
        return "".join(json_line(line) + "\n" for line in lines)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, delimiter=_delimiter(kind), lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()


def parse_lines(lines: Iterator[str], kind: str) -> Iterator[dict[str, Any]]:
    """The rows of a part file again: what `format_lines` wrote, its whole lines only."""
    if kind in LINES:
        yield from map(json.loads, lines)
    else:
        yield from csv.DictReader(lines, delimiter=_delimiter(kind))


def need_pyarrow(output: Path) -> None:
    """Raise a `DataError` where Parquet cannot be written."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise DataError(f"{output}: writing Parquet needs an extra: pip install 'dmin[data]'") from error


def write_parquet(part: Path, output: Path) -> None:
    """Turn lines of JSON into a Parquet file, in bounded memory: one pass for the columns' types, one to write.

    A column whose values have several types becomes text.
    """
    import pyarrow
    from pyarrow import parquet

    def groups() -> Iterator[list[Record]]:
        with part.open(encoding="utf-8") as lines:
            while rows := [json.loads(line) for line in islice(lines, _ROW_GROUP)]:
                yield rows

    kinds: dict[str, set[type]] = {}
    for rows in groups():
        for row in rows:
            for name, value in row.items():
                kinds.setdefault(name, set()).update({type(value)} if value is not None else ())
    mixed = {name for name, found in kinds.items() if len(found) > 1 and not found <= {int, float}}

    def whole(row: Record) -> Record:
        return {
            name: str(row[name]) if name in mixed and row.get(name) is not None else row.get(name) for name in kinds
        }

    schemas = [pyarrow.Table.from_pylist([whole(row) for row in rows]).schema for rows in groups()]
    schema = pyarrow.unify_schemas(schemas, promote_options="permissive") if schemas else pyarrow.schema([])
    scratch = output.with_name(output.name + ".writing")
    try:
        with parquet.ParquetWriter(scratch, schema) as writer:
            for rows in groups():
                writer.write_table(pyarrow.Table.from_pylist([whole(row) for row in rows], schema=schema))
        scratch.replace(output)
        part.unlink()
    finally:
        scratch.unlink(missing_ok=True)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = json_line(value) if isinstance(value, list | dict) else str(value)
    return " ".join(text.splitlines())


def _delimiter(kind: str) -> str:
    return "," if kind == ".csv" else "\t"

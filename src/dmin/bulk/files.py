"""Classify a file of any size in bounded memory, and resume after a crash without losing or repeating a row.

Answers go to OUTPUT.part, batch by batch; the file gets its name when it is whole. One input row is one output line, so
the number of whole lines says where to resume. Parquet cannot be appended to: its part is JSONL until the end.
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

from dmin.data.readers import missing_column, read_records
from dmin.errors import DataError, StorageError

BATCH = 256
OUTPUTS = (".jsonl", ".csv", ".tsv", ".parquet")
_LINES = (".jsonl", ".parquet")  # kinds whose part is JSONL
_ROW_GROUP = 20_000
Record = dict[str, Any]
AnswerFunction = Callable[[Sequence[str]], list[Record]]  # texts -> fields to add, one dict per text


def read_texts(source: Path | IO[str], column: str) -> Iterator[tuple[int, Record]]:
    """(row, record) of a labelled or unlabelled file; lines of plain text become {column: line}."""
    if not isinstance(source, Path) or source.suffix.lower() == ".txt":
        lines = source if not isinstance(source, Path) else _open_text(source)
        for number, line in enumerate(lines, 1):
            yield number, {column: line.rstrip("\n")}
        return
    for number, record in read_records(source):
        if column not in record:
            raise missing_column(source, number, record, column, "--text-column")
        yield number, dict(record)


def answer_batches(
    records: Iterator[tuple[int, Record]], answer: AnswerFunction, column: str, size: int | None = None
) -> Iterator[list[Record]]:
    """Records with their answers, batch by batch. A row without a text stays in its place, its answers empty."""
    while batch := list(islice(records, size or BATCH)):
        texts = [_text(number, record.get(column)) for number, record in batch]
        found = iter(answer([text for text in texts if text is not None]) if any(texts) else ())
        answers = [next(found) if text is not None else {} for text in texts]
        names = next((list(fields) for fields in answers if fields), ["label"])
        yield [
            beside(record, fields or dict.fromkeys(names)) for (_, record), fields in zip(batch, answers, strict=True)
        ]


def classify_file(
    records: Iterator[tuple[int, Record]],
    output: Path,
    answer: AnswerFunction,
    *,
    column: str,
    resume: bool = False,
    batch: int | None = None,
    after_batch: Callable[[int], object] = int,
) -> int:
    """Write each record with its answer; return the number of rows written in all.

    Args:
        records: what `read_texts` gives.
        output: a .jsonl, .csv, .tsv or .parquet file that is not there yet.
        answer: texts -> fields to add, one dict per text.
        column: the column of the texts.
        resume: continue OUTPUT.part.
        batch: rows answered and written at once; 256 without it.
        after_batch: called with the number of rows of each batch.
    """
    kind = output.suffix.lower()
    part = output.with_name(output.name + ".part")
    _check(output, part, kind, resume)
    done, columns = _trim(part, kind) if part.is_file() else (0, None)
    rows = done
    try:
        with part.open("a" if done else "w", encoding="utf-8", newline="") as file:
            for _ in islice(records, done):
                pass
            for lines in answer_batches(records, answer, column, batch):
                columns = _check_columns(columns, lines, kind, rows, part if done else None)
                file.write(_format(lines, kind, columns, header=rows == 0))
                file.flush()
                os.fsync(file.fileno())
                rows += len(lines)
                after_batch(len(lines))
        if kind == ".parquet":
            _to_parquet(part, output)
        else:
            part.replace(output)
    except OSError as error:
        kept = f" ({part.name} is kept: --resume)" if part.is_file() else ""
        raise StorageError(f"cannot write {output}: {error.strerror or error}{kept}") from error
    finally:
        if rows == 0:
            part.unlink(missing_ok=True)  # nothing was answered: nothing to resume
    return rows


def beside(record: Mapping[str, Any], fields: Mapping[str, Any]) -> Record:
    """A record with its answer; where it has a column of the same name, the answer's is called answer_NAME."""
    return {**record, **{(f"answer_{name}" if name in record else name): value for name, value in fields.items()}}


def json_line(line: Any) -> str:
    """A line of JSONL; values without a JSON type (dates, decimals) as text."""
    return json.dumps(line, ensure_ascii=False, default=str)


def _check(output: Path, part: Path, kind: str, resume: bool) -> None:
    if kind not in OUTPUTS:
        raise DataError(f"{output}: output goes to {', '.join(OUTPUTS)}")
    if kind == ".parquet":
        _need_pyarrow(output)
    if output.exists():
        raise DataError(f"{output} is there already: choose another --output, or remove it")
    if part.is_file() and not resume:
        raise DataError(f"{part} is there from an interrupted run: add --resume to continue it, or remove it")


def _open_text(path: Path) -> Iterator[str]:
    if not path.is_file():
        raise DataError(f"no such file: {path}")
    with path.open(encoding="utf-8-sig") as lines:
        yield from lines


def _text(number: int, value: Any) -> str | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str):
        raise DataError(f"row {number}: the text is {value!r} ({type(value).__name__}), not a string")
    return value


def _check_columns(
    columns: list[str] | None, lines: Sequence[Record], kind: str, rows: int, resumed: Path | None
) -> list[str]:
    """The columns of the file: those of its first row. A resumed file must have them; so must every row of a table."""
    found = columns or list(lines[0])
    for number, line in enumerate(lines, rows + 1):
        if resumed is not None and columns and not set(columns) >= set(line) and kind not in _LINES:
            raise DataError(f"{resumed} was begun with other columns ({', '.join(columns)}): use the same options")
        stray = [name for name in line if name not in found]
        if stray and kind not in _LINES:
            raise DataError(
                f"row {number} has a column {stray[0]!r} that the first row lacks: a table cannot hold it, use .jsonl"
            )
    if resumed is not None and columns and kind in _LINES:
        answers = [name for name in lines[0] if name not in columns]
        if answers and rows:
            raise DataError(f"{resumed} was begun without {', '.join(answers)}: use the same options")
    return found


def _format(lines: Sequence[Record], kind: str, columns: list[str], *, header: bool) -> str:
    if kind in _LINES:
        return "".join(json_line(line) + "\n" for line in lines)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, delimiter="," if kind == ".csv" else "\t", lineterminator="\n")
    if header:
        writer.writeheader()
    # A line break inside a field would break the count of rows that a resume relies on.
    writer.writerows({key: _cell(value) for key, value in line.items()} for line in lines)
    return buffer.getvalue()


def _trim(part: Path, kind: str) -> tuple[int, list[str] | None]:
    """Remove a half-written last line; return the number of whole rows and the columns of the first."""
    rows = whole = 0
    first = ""
    with part.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                first = first or line.decode("utf-8")
                rows, whole = rows + 1, whole + len(line)
    os.truncate(part, whole)
    if not first:
        return 0, None
    if kind in _LINES:
        return rows, list(json.loads(first))
    return max(0, rows - 1), next(csv.reader([first], delimiter="," if kind == ".csv" else "\t"))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = json_line(value) if isinstance(value, list | dict) else str(value)
    return " ".join(text.splitlines())


def _need_pyarrow(output: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise DataError(f"{output}: writing Parquet needs an extra: pip install 'dmin[data]'") from error


def _to_parquet(part: Path, output: Path) -> None:
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

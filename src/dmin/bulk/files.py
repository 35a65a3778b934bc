"""Classify a file of any size in bounded memory, and resume after a crash without losing or repeating a row.

Answers go to OUTPUT.part, batch by batch (see `dmin.bulk.part`); the file gets its name when it is whole. One usable input
row is one output line, so the number of whole lines says where to resume. Parquet cannot be appended to: its part is JSONL
until the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from dmin.bulk.inputs import InputRow, Record
from dmin.bulk.outputs import LINES, format_lines, table_row
from dmin.bulk.part import Part, beside
from dmin.errors import DataError, StorageError

BATCH = 256
ERROR = "error"  # the column that says why a kept row has no answer
AnswerFunction = Callable[[Sequence[str]], list[Record]]  # texts -> fields to add, one dict per text


def answer_batches(
    rows: Iterator[InputRow], answer: AnswerFunction, fields: Sequence[str], size: int | None = None
) -> Iterator[list[Record]]:
    """Records with their answers, batch by batch. A row without a text stays in its place, its answers empty.

    Args:
        rows: what `read_texts` gives.
        answer: texts -> fields to add, one dict per text.
        fields: the names of these fields, and "error" where rows that cannot be used are kept.
        size: rows of a batch; 256 without it.
    """
    while batch := list(islice(rows, size or BATCH)):
        texts = [row.text for row in batch if row.text is not None]
        found = iter(answer(texts) if texts else ())
        lines = []
        for row in batch:
            values = dict.fromkeys(fields) | (next(found) if row.text is not None else {})
            lines.append(beside(row.record, values | ({ERROR: row.error} if ERROR in fields else {})))
        yield lines


def classify_file(
    rows: Iterator[InputRow],
    output: Path,
    answer: AnswerFunction,
    *,
    fields: Sequence[str],
    made_with: Mapping[str, Any] | None = None,
    resume: bool = False,
    raw: bool = False,
    batch: int | None = None,
    after_resume: Callable[[int], object] = int,
    after_batch: Callable[[int], object] = int,
) -> int:
    """Write each record with its answer; return the number of rows written in all.

    Args:
        rows: what `read_texts` gives.
        output: a .jsonl, .csv, .tsv or .parquet file that is not there yet.
        answer: texts -> fields to add, one dict per text.
        fields: the names of these fields (see `answer_batches`).
        made_with: what decides the answers (the classifier's digest, options), so that a resume with others is refused.
        resume: continue OUTPUT.part.
        raw: write cells of CSV and TSV as they are, also those that a spreadsheet would run as a formula.
        batch: rows answered and written at once; 256 without it.
        after_resume: called with the number of rows that were answered before.
        after_batch: called with the number of rows of each batch.
    """
    part = Part(output, fields, made_with or {}, raw=raw)
    part.check(resume=resume)
    written = 0
    try:
        with part.opened() as file:
            written, columns = part.trim()
            try:
                part.skip_answered(rows, written)
                after_resume(written)
                for lines in answer_batches(rows, answer, fields, batch):
                    shown = lines if part.kind in LINES else [table_row(line, raw=raw) for line in lines]
                    columns = _check_columns(columns, shown, part.kind, written)
                    file.write(format_lines(shown, part.kind, columns, header=written == 0))
                    file.flush()
                    os.fsync(file.fileno())
                    written += len(lines)
                    after_batch(len(lines))
                part.finish()
            finally:
                if written == 0:
                    part.drop()  # nothing was answered: nothing to resume
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        kept = f" ({part.path.name} is kept: --resume)" if part.path.is_file() else ""
        raise StorageError(f"cannot write {output}: {error.strerror or error}{kept}") from error
    return written


def _check_columns(columns: list[str] | None, lines: Sequence[Mapping[str, Any]], kind: str, rows: int) -> list[str]:
    """The columns of the file: those of its first row. Every row of a table must fit into them."""
    found = columns or list(lines[0])
    if kind not in LINES:
        for number, line in enumerate(lines, rows + 1):
            stray = [name for name in line if name not in found]
            if stray:
                raise DataError(
                    f"row {number} has a column {stray[0]!r} that the first row lacks: a table cannot hold it, use .jsonl"
                )
    return found

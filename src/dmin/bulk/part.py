"""OUTPUT.part: answers that are not complete yet, and OUTPUT.part.json, which says what they were made with.

A run is resumed only by the same classifier with the same options, and only if the rows that are answered are those that
the input begins with: the result is then the file that a run without an interruption would have written.
"""

from __future__ import annotations

import csv
import glob
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

from dmin.bulk.inputs import InputRow, Record
from dmin.bulk.outputs import LINES, OUTPUTS, json_line, need_pyarrow, parse_lines, table_row, write_parquet
from dmin.errors import DataError, one_line
from dmin.files import read_json, write_json

FORMAT = 1


class Part:
    """The part file of one output.

    Args:
        output: the .jsonl, .csv, .tsv or .parquet file that it becomes.
        fields: the names of the answers' columns.
        made_with: what else decides the answers: the classifier's digest and options, in JSON types.
        raw: cells of a table are written as they are, formulas too.
    """

    def __init__(self, output: Path, fields: Sequence[str], made_with: Mapping[str, Any], *, raw: bool = False) -> None:
        self.output, self.kind, self.raw = output, output.suffix.lower(), raw
        self.fields = list(fields)
        self.path = output.with_name(output.name + ".part")
        self.record = output.with_name(output.name + ".part.json")
        self.made_with = {"format": FORMAT, "fields": self.fields, "raw": raw, **made_with}

    def check(self, *, resume: bool) -> None:
        """Refuse an output that cannot be written or is there, and a part that was made otherwise."""
        if self.kind not in OUTPUTS:
            raise DataError(f"{self.output}: output goes to {', '.join(OUTPUTS)}")
        if self.kind == ".parquet":
            need_pyarrow(self.output)
        if self.output.exists():
            raise DataError(f"{self.output} is there already: choose another --output, or remove it")
        if not self.path.is_file():
            return
        if not self.record.is_file() and not self.path.stat().st_size:
            return  # of a run that was killed before it had written anything
        if not resume:
            raise DataError(f"{self.path} is there from an interrupted run: add --resume to continue it, or remove it")
        if not self.record.is_file():
            raise DataError(
                f"{self.path}: {self.record.name}, which says what it was made with, is missing; remove both"
            )
        before = read_json(self.record)
        different = differences(before if isinstance(before, dict) else {}, self.made_with)
        if different:
            raise DataError(
                f"{self.path} was begun with {different}: use the same options to continue, or remove it to start again"
            )

    @contextmanager
    def opened(self) -> Iterator[IO[str]]:
        """The part file, to append to; no other process may have it open."""
        with self.path.open("a", encoding="utf-8", newline="") as file:
            _lock(file, self.path)
            write_json(self.record, self.made_with)
            yield file

    def trim(self) -> tuple[int, list[str] | None]:
        """Remove a half-written last line; return the number of whole rows and the columns of the first."""
        rows = whole = 0
        first = ""
        with self.path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    first = first or line.decode("utf-8", "replace")
                    rows, whole = rows + 1, whole + len(line)
        rows = rows if self.kind in LINES else max(0, rows - 1)
        os.truncate(self.path, whole if rows else 0)
        if not rows:
            return 0, None
        with self._damage():
            header = list(json.loads(first)) if self.kind in LINES else next(csv.reader([first], delimiter=self._sign))
        return rows, header

    def skip_answered(self, rows: Iterator[InputRow], done: int) -> None:
        """Move on to the first row without an answer; the rows before it must be those that were answered."""
        with self._damage(), self.path.open(encoding="utf-8", newline="") as file:
            for number, stored in enumerate(islice(parse_lines(iter(file), self.kind), done), 1):
                row = next(rows, None)
                if row is None:
                    raise DataError(
                        f"{self.path} has {done} rows, the input only {number - 1}: it was begun with another one"
                    )
                if not self._same(row.record, stored):
                    raise DataError(
                        f"{self.path} was begun with another input: its row {number} differs from row {row.number} of this "
                        "one. Give the same input, or remove the part to start again"
                    )

    def finish(self) -> None:
        """Give the file its name."""
        if self.kind == ".parquet":
            write_parquet(self.path, self.output)
        else:
            self.path.replace(self.output)
        self._clean()

    def drop(self) -> None:
        """Remove a part that holds nothing."""
        self.path.unlink(missing_ok=True)
        self._clean()

    def _clean(self) -> None:
        self.record.unlink(missing_ok=True)
        for left in self.record.parent.glob(
            f".{glob.escape(self.record.name)}.*.part"
        ):  # of a run killed in `write_json`
            left.unlink(missing_ok=True)

    def _same(self, record: Record, stored: Mapping[str, Any]) -> bool:
        line = beside(record, dict.fromkeys(self.fields))
        if self.kind in LINES:
            return set(line) == set(stored) and all(
                json_line(stored[name]) == json_line(record[name]) for name in record
            )
        return all(stored.get(name) == cell for name, cell in table_row(record, raw=self.raw).items())

    @property
    def _sign(self) -> str:
        return "," if self.kind == ".csv" else "\t"

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except DataError:
            raise
        except (ValueError, csv.Error, AttributeError, StopIteration, TypeError) as error:
            raise DataError(f"{self.path} is damaged ({one_line(error)}): remove it to start again") from error


def beside(record: Mapping[str, Any], fields: Mapping[str, Any]) -> Record:
    """A record with its answer; where it has a column of the same name, the answer's is called answer_NAME."""
    return {**record, **{(f"answer_{name}" if name in record else name): value for name, value in fields.items()}}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs between the settings of two runs, in words; empty where nothing does."""
    different = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if different == ["classifier"]:
        return "another classifier (examples, model, or how it refuses)"
    listed = [f"{name} {before.get(name)!r}, now {now.get(name)!r}" for name in different if name != "classifier"]
    return f"other options ({', '.join(listed)})" if listed else ""


def _lock(file: IO[str], path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DataError(
            f"{path} is being written by another command: wait for it, or choose another --output"
        ) from error
    except OSError:  # a file system without locks
        return

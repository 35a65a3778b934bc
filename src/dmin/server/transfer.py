"""Collections as files: YAML and JSONL out, YAML, JSON, JSONL, CSV and TSV in."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from dmin.data.readers import BadRow, read_format
from dmin.errors import DataError
from dmin.server.problems import Problem
from dmin.server.queries import Content
from dmin.server.schemas import Label, TextLine
from dmin.server.settings import Limits

# A form of another site can send text/plain without asking; these types it cannot.
TYPES = {
    "application/yaml": ".yaml", "application/x-yaml": ".yaml", "text/yaml": ".yaml", "application/json": ".json",
    "application/x-ndjson": ".jsonl", "application/jsonl": ".jsonl", "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
}  # fmt: skip
_LABEL, _TEXT = TypeAdapter(Label), TypeAdapter(TextLine)


def to_yaml(content: Content) -> str:
    """`{label: [texts]}`, as `dmin classify --examples` takes it."""
    return yaml.safe_dump(content.examples, allow_unicode=True, sort_keys=False, width=10_000)


def to_jsonl(content: Content) -> str:
    """One `{"text", "label"}` per line."""
    rows = [(text, label) for label, texts in content.examples.items() for text in texts]
    return "".join(json.dumps({"text": text, "label": label}, ensure_ascii=False) + "\n" for text, label in rows)


def suffix_of(content_type: str) -> str:
    """The kind of file of a Content-Type; a 415 problem for others."""
    kind = content_type.split(";")[0].strip().lower()
    if kind not in TYPES:
        raise Problem(415, "unknown-type", f"Send a file with a Content-Type of {', '.join(sorted(set(TYPES)))}.")
    return TYPES[kind]


def read_rows(body: bytes, content_type: str, limits: Limits) -> list[tuple[str, str]]:
    """The (text, label) rows of an uploaded file; a 422 problem names the first row that cannot be used."""
    suffix = suffix_of(content_type)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"upload{suffix}"
        path.write_bytes(body)
        try:
            rows = [_row(number, record) for number, record in read_format(path)]
        except DataError as error:
            raise Problem(422, "unreadable-file", str(error).replace(str(path), "the file")) from error
    if not rows:
        raise Problem(422, "unreadable-file", "The file holds no rows.")
    if len(rows) > limits.pile:
        raise Problem(413, "too-large", f"A file may have {limits.pile} rows.")
    for number, (text, _) in enumerate(rows, 1):
        if len(text) > limits.text_length:
            raise Problem(422, "too-long", f"Row {number}: a text may have {limits.text_length} characters.")
    return rows


def _row(number: int, record: Any) -> tuple[str, str]:
    if isinstance(record, BadRow):
        raise Problem(422, "unreadable-file", f"Row {number}: {record.reason}")
    missing = [column for column in ("text", "label") if column not in record]
    if missing:
        there = ", ".join(str(column)[:40] for column in list(record)[:10])
        raise Problem(422, "unreadable-file", f"Row {number}: there is no column {missing[0]!r}; it has {there}.")
    try:
        return _TEXT.validate_python(str(record["text"])), _LABEL.validate_python(str(record["label"]).strip())
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise Problem(422, "unreadable-file", f"Row {number}: {reason}") from error


def grouped(rows: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Rows as `{label: [texts]}`."""
    found: dict[str, list[str]] = {}
    for text, label in rows:
        found.setdefault(label, []).append(text)
    return found

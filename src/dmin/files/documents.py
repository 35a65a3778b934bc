"""JSON documents: written whole, read with bounds, checked against a pydantic model where one is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dmin.errors import DataError, one_line
from dmin.files.atomic import write_atomic

Document = TypeVar("Document", bound=BaseModel)
MOST_BYTES = 1 << 30  # a document larger than this is refused before it is read


def write_json(path: Path, value: Any) -> None:
    """Write `value` as readable JSON, atomically."""
    try:
        content = (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8")
    except UnicodeEncodeError as error:
        wrong = short(error.object[max(0, error.start - 20) : error.end])
        raise DataError(f"{path}: {wrong} cannot be written as UTF-8") from error
    write_atomic(path, content)


def read_json(path: Path, most: int = MOST_BYTES) -> Any:
    """Read a JSON file; a missing, broken, too large or too deeply nested one is a `DataError` that names it."""
    try:
        size = path.stat().st_size
        if size > most:
            raise DataError(f"{path} has {size:,} bytes; at most {most:,} are read")
        return parse_json(path.read_bytes(), str(path))
    except FileNotFoundError as error:
        raise DataError(f"no such file: {path}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def parse_json(content: str | bytes, source: str) -> Any:
    """Parse JSON that came from `source`; what is broken, nested too deeply or holds a key twice is a `DataError`."""
    try:
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        return json.loads(text, object_pairs_hook=_without_key_twice)
    except RecursionError as error:
        raise DataError(f"{source} is not valid JSON for dmin: it is nested too deeply") from error
    except ValueError as error:  # not JSON, not UTF-8, a key twice, or a number of thousands of digits
        raise DataError(f"{source} is not valid JSON: {one_line(error)}") from error


def _without_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {short(twice)} is there twice, and one would be lost")
    return found


def read_document(path: Path, model: type[Document]) -> Document:
    """Read a JSON object and check every field; the first wrong one is named in a `DataError`."""
    return check_document(read_json(path), model, str(path))


def check_document(value: Any, model: type[Document], source: str) -> Document:
    """Check a value that came from a file against a pydantic model."""
    if not isinstance(value, dict):
        raise DataError(f"{source}: a JSON object is needed, not {short(value)}")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part)[:60] for part in first["loc"]) or "the document"
        if first["type"] == "missing":
            raise DataError(f"{source} lacks {where!r}; was it changed by hand?") from error
        raise DataError(f"{source}: {where!r} is {short(first['input'])}: {one_line(first['msg'])}") from error
    except RecursionError as error:
        raise DataError(f"{source} is nested too deeply") from error


def short(value: Any, most: int = 60) -> str:
    """A value from a file for a message, in at most `most` characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, a deep nesting
        text = f"a {type(value).__name__}"
    return text if len(text) <= most else text[: most - 3] + "..."

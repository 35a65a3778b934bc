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
    write_atomic(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path, most: int = MOST_BYTES) -> Any:
    """Read a JSON file; a missing, broken, too large or too deeply nested one is a `DataError` that names it."""
    try:
        size = path.stat().st_size
        if size > most:
            raise DataError(f"{path} has {size:,} bytes; at most {most:,} are read")
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"no such file: {path}") from error
    except DataError:
        raise
    except RecursionError as error:
        raise DataError(f"{path} is not valid JSON for dmin: it is nested too deeply") from error
    except ValueError as error:  # not JSON, not UTF-8, or a number of thousands of digits
        raise DataError(f"{path} is not valid JSON: {one_line(error)}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def read_document(path: Path, model: type[Document]) -> Document:
    """Read a JSON object and check every field; the first wrong one is named in a `DataError`."""
    return check_document(read_json(path), model, str(path))


def check_document(value: Any, model: type[Document], source: str) -> Document:
    """Check a value that came from a file against a pydantic model."""
    if not isinstance(value, dict):
        raise DataError(f"{source}: a JSON object is needed, not {_short(value)}")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        if first["type"] == "missing":
            raise DataError(f"{source} lacks {where!r}; was it changed by hand?") from error
        raise DataError(f"{source}: {where!r} is {_short(first['input'])}: {one_line(first['msg'])}") from error
    except RecursionError as error:
        raise DataError(f"{source} is nested too deeply") from error


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, a deep nesting
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."

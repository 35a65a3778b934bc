"""JSON from files: whatever is wrong with it is one line that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from dmin.errors import DataError
from dmin.files import read_document, read_json


class Thing(BaseModel):
    size: int
    names: list[str]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"size": ' + b"9" * 5000 + b', "names": []}', "not valid JSON"),
        (b"[]", "a JSON object is needed"),
        (b"{}", "lacks 'size'"),
        (b'{"size": "many", "names": []}', "'size' is 'many'"),
        (b'{"size": 1, "names": [1]}', r"'names\.0' is 1"),
        (b'{"size": 1, "names": null}', "'names' is None"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_name_of_the_file(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "thing.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=reason) as caught:
        read_document(path, Thing)
    assert "thing.json" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_document_larger_than_the_bound_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_text('"' + "x" * 2000 + '"')
    with pytest.raises(DataError, match=r"2,002 bytes; at most 1,000"):
        read_json(path, most=1000)


def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        read_json(tmp_path)

"""Records which of many files are answered, in the folder of the answers, so that a second run does the rest.

FOLDER/_dmin/settings.yaml says what the answers were made with; FOLDER/_dmin/done/NAME is written after the answers of
NAME have their name, and holds their size. An output without a receipt is not trusted: the file is answered again. The
name of `_dmin` begins with an underscore because Arrow, Ray and Spark skip such names when they read a folder of data.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import yaml

from dmin.bulk.part import differences
from dmin.bulk.remote import Place, storage_errors
from dmin.data.yaml_documents import parse_yaml
from dmin.errors import DataError

WORK = "_dmin"
_AT_ONCE = 32  # receipts read at a time: on an object store each one is a round trip


@dataclass(frozen=True)
class Ledger:
    """The records of one folder of answers."""

    folder: Place

    @property
    def scratch(self) -> Place:
        """The folder of answers that are not complete yet."""
        return self.folder / WORK / "scratch"

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Start the records, or check that the answers in the folder were made with the same settings.

        Raises:
            DataError: when they were not, or when the folder holds something else.
        """
        place = self.folder / WORK / "settings.yaml"
        content = place.read()
        own = (f"{WORK}/settings.yaml", f"{WORK}/scratch/")
        if any(not name.startswith(own) for name, _ in self.folder.files()):  # something is answered
            if content is None:
                raise DataError(f"{self.folder} holds something else: choose an empty or a new folder for --output")
            _compare(content, settings, self.folder)
            return
        place.write(yaml.safe_dump(dict(settings), allow_unicode=True, sort_keys=False))

    def done(self, inputs: Mapping[str, Any]) -> dict[str, int]:
        """Input -> rows, for inputs whose answers are complete and made from the input as it is now."""
        sizes = {name: info.size for name, info in self.folder.files()}
        receipts = self.folder / WORK / "done"
        known = [name for name in inputs if f"{WORK}/done/{name}.yaml" in sizes]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            contents = list(pool.map(lambda name: (receipts / f"{name}.yaml").read(), known))
        found = {}
        for name, content in zip(known, contents, strict=True):
            receipt = _parse(content)
            if receipt.get("input") == stamp(inputs[name]) and receipt.get("size") == sizes.get(output_name(name), -1):
                found[name] = int(receipt["rows"])
        return found

    def sign(self, name: str, input_stamp: str, rows: int, size: int) -> None:
        """Write the receipt of an input: its answers are complete and in their place."""
        receipt = {"input": input_stamp, "rows": rows, "size": size}
        (self.folder / WORK / "done" / f"{name}.yaml").write(yaml.safe_dump(receipt, sort_keys=False))

    def clean(self) -> None:
        """Remove what killed runs left half-written. Call it after everything is answered, when nobody else writes."""
        with storage_errors(f"cannot remove {self.scratch}"):
            if self.scratch.is_folder:
                self.scratch.filesystem.delete_dir(self.scratch.path)


def output_name(name: str) -> str:
    """The file of answers of an input: same name, same kind; lines of plain text become JSONL."""
    return f"{name}.jsonl" if name.lower().endswith(".txt") else name


def stamp(info: Any) -> str:
    """Size and time of an input: another stamp, another content."""
    return f"{info.size} bytes, {info.mtime_ns} ns"


def _parse(content: bytes | None) -> dict[str, Any]:
    """A receipt; empty where it is damaged, so that the file is answered again."""
    try:
        found = parse_yaml((content or b"").decode(), "receipt")
    except (DataError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("rows"), int) else {}


def _compare(content: bytes, now: Mapping[str, Any], folder: Place) -> None:
    try:
        before = parse_yaml(content.decode(), f"{folder}/{WORK}/settings.yaml")
    except UnicodeDecodeError as error:
        raise DataError(f"{folder}/{WORK}/settings.yaml is damaged: choose another --output") from error
    if not isinstance(before, dict):
        raise DataError(f"{folder}/{WORK}/settings.yaml is damaged: choose another --output")
    different = differences(before, now)
    if different:
        raise DataError(f"{folder} was begun with {different}: use the same ones to continue, or another --output")

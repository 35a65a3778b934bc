"""The journal of a labelling session: one line of JSON for each thing a person did, on disk before it counts.

Lines are only added, each followed by fsync, so a crash loses at most the line that was being written when it came: a
last line without its end is dropped. The first line names the pile; a journal of another pile is refused.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO, Any, Self

from dmin.errors import DataError, StorageError
from dmin.files import sync
from dmin.labelling.pile import Pile

FORMAT, VERSION = "dmin-labelling-session", 1
ACTIONS = ("answer", "skip", "undo")
_SHOWN = 60


class Journal:
    """An open journal: `entries` were there, `add` appends.

    Args:
        path: the file; made where there is none.
        pile: the texts that the session is about.

    Raises:
        DataError: when the file is a journal of another pile, is damaged, or is no journal.
        StorageError: when another process has it open, or it cannot be written.
    """

    def __init__(self, path: Path, pile: Pile) -> None:
        self.path = path
        self.entries: list[dict[str, Any]] = []
        header = {
            "format": FORMAT, "version": VERSION, "digest": pile.digest, "texts": pile.total, "first": pile.texts[0],
        }  # fmt: skip
        if path.parent.exists() and not path.parent.is_dir():
            raise StorageError(f"{path.parent} is a file: the session needs a folder of its own, give another --out")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Binary, and read and written by one handle: the lock belongs to it.
            self._file: IO[bytes] = path.open("a+b")
        except OSError as error:
            raise StorageError(f"cannot open {path}: {error.strerror or error}") from error
        try:
            self._lock()
            lines = self._whole_lines()
            if lines:
                self._check_header(lines[0], header)
                self.entries = [self._parse(number, line) for number, line in enumerate(lines[1:], 2)]
            else:
                self._write(header)
                sync(path.parent)
        except BaseException:
            self._file.close()
            raise

    def add(self, entry: dict[str, Any]) -> None:
        """Append an entry; it is on the disk when this returns."""
        self._write(entry)
        self.entries.append(entry)

    def close(self) -> None:
        """Give the file free for another session."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # Windows
            return
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StorageError(
                f"{self.path} is open in another session: close that one, or give another --out"
            ) from error

    def _whole_lines(self) -> list[str]:
        """The lines of the file; what a crash left of an unfinished last line is cut off."""
        self._file.seek(0)
        data = self._file.read()
        end = data.rfind(b"\n") + 1
        if end < len(data):
            self._file.truncate(end)
        try:
            return data[:end].decode("utf-8").split("\n")[:-1]
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path} is no labelling session: not UTF-8 text at byte {error.start}") from error

    def _check_header(self, line: str, expected: dict[str, Any]) -> None:
        try:
            header = json.loads(line)
        except json.JSONDecodeError:
            header = None
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise DataError(
                f"{self.path} is no labelling session: its first line is {line[:_SHOWN]!r}; give another --out"
            )
        if header.get("version") != VERSION:
            raise DataError(f"{self.path} is of version {header.get('version')!r}; this dmin reads version {VERSION}")
        if header.get("digest") == expected["digest"]:
            return
        if header.get("texts") != expected["texts"]:
            what = f"it was begun on {header.get('texts')} texts, this pile has {expected['texts']}"
        elif header.get("first") != expected["first"]:
            was, now = str(header.get("first"))[:_SHOWN], expected["first"][:_SHOWN]
            what = f"its pile begins with {was!r}, this one with {now!r}"
        else:
            what = f"both have {expected['texts']} texts and the same first one, but others differ"
        raise DataError(
            f"{self.path} is a session of another pile: {what}; give that pile, or go on from "
            f"its answers: --examples {self.path.with_name('examples.yaml')} --out NEW"
        )

    def _parse(self, number: int, line: str) -> dict[str, Any]:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{self.path}, line {number}: not valid JSON ({error.msg}); mend or remove the line"
            ) from error
        if not isinstance(entry, dict) or entry.get("do") not in ACTIONS:
            raise DataError(f"{self.path}, line {number}: {line[:_SHOWN]!r} is none of {', '.join(ACTIONS)}")
        wanted = {"answer": ("row", "text", "label"), "skip": ("row",), "undo": ()}[entry["do"]]
        for name in wanted:
            if not isinstance(entry.get(name), int if name == "row" else str):
                raise DataError(f"{self.path}, line {number}: {name} is {entry.get(name)!r}; mend or remove the line")
        sure = entry.get("confidence")
        if sure is not None and not (isinstance(sure, int | float) and 0 <= sure <= 1):
            raise DataError(f"{self.path}, line {number}: confidence is {sure!r}; mend or remove the line")
        return entry

    def _write(self, entry: dict[str, Any]) -> None:
        # ensure_ascii: line separators of other alphabets cannot break a line.
        data = (json.dumps(entry, ensure_ascii=True) + "\n").encode()
        try:
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StorageError(f"cannot write {self.path}: {reason}; the last answer is not saved") from error

"""Which file, which of its columns, which encoding: `Source`, written `file.csv:text=ticket,label=intent`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from dmin.data.readers import name_shown
from dmin.errors import DataError, nearest_name
from dmin.files import short, user_path

TEXT, LABEL, ENCODING = "text", "label", "utf-8"
TEXT_NAMES = (
    TEXT, "texts", "sentence", "utterance", "query", "question", "message", "body", "content", "ticket", "document",
)  # fmt: skip
LABEL_NAMES = (LABEL, "labels", "intent", "intents", "category", "class", "topic", "tag")
_KEY = r"(?:text|label|encoding)="
_SETTINGS = re.compile(rf":(?={_KEY})")
_BETWEEN = re.compile(rf",(?={_KEY})")
_NAMES = re.compile(rf",(?!{_KEY})")


@dataclass(frozen=True)
class Source:
    """A file with the names of its columns and its encoding.

    Args:
        name: the file as it was given, without what follows `:`; also a named set or a hub id.
        text: the column of the texts; where it is called neither this nor by one usual name, an error says so.
        label: the column of the labels, likewise.
        encoding: of text files.
        fallback: a column that was named and is missing is found by its usual name: for a command that reads two files,
            whose options need not fit both. Columns that stand behind the file's own name must be there.
        named: what stood behind the file's name.
    """

    name: str
    text: str = TEXT
    label: str = LABEL
    encoding: str = ENCODING
    fallback: bool = False
    named: frozenset[str] = field(default=frozenset(), compare=False)

    @classmethod
    def parse(
        cls,
        spec: str | Path,
        text: str = TEXT,
        label: str = LABEL,
        encoding: str = ENCODING,
        *,
        fallback: bool = False,
    ) -> Self:
        """Read `FILE` or `FILE:text=COLUMN,label=COLUMN,encoding=NAME`; what the file is given with comes first."""
        whole = str(spec)
        found = _SETTINGS.search(whole)
        if found is None or exists(Path(whole)):
            return cls(whole, text, label, encoding, fallback)
        name, settings = whole[: found.start()], whole[found.end() :]
        own: dict[str, str] = {}
        for setting in _BETWEEN.split(settings):
            key, _, value = setting.partition("=")
            if not value or key in own:
                raise DataError(f"{whole!r}: write FILE:text=COLUMN,label=COLUMN, each once and with a value")
            own[key] = value
        values = {"text": text, "label": label, "encoding": encoding, **own}
        return cls(name, values["text"], values["label"], values["encoding"], fallback, frozenset(own))

    @property
    def path(self) -> Path:
        """The file; `~` is the home folder."""
        return user_path(self.name)

    def text_column(self, columns: Sequence[str], where: str) -> str:
        """The column of the texts among those that there are; a guess is said by a warning.

        Raises:
            DataError: when none is called so and none is the obvious one.
        """
        if (known := self._known(self.text, TEXT, columns, where, "text")) is not None:
            return known
        labels = _usual(columns, LABEL_NAMES, LABEL)
        found = _usual(columns, TEXT_NAMES, TEXT)
        if found is None and labels is not None and len(columns) == 2:
            found = next(column for column in columns if column != labels)
        if found is None:
            raise missing_column(where, columns, self.text, "text")
        return self._said(found, "text")

    def label_column(self, columns: Sequence[str], where: str) -> str:
        """The column of the labels, likewise."""
        if (known := self._known(self.label, LABEL, columns, where, "label")) is not None:
            return known
        found = _usual(columns, LABEL_NAMES, LABEL)
        if found is None:
            raise missing_column(where, columns, self.label, "label")
        return self._said(found, "label")

    def _known(self, wanted: str, usual: str, columns: Sequence[str], where: str, kind: str) -> str | None:
        """The column that was asked for; None where another may be guessed."""
        if wanted in columns:
            return wanted
        if kind in self.named or (wanted != usual and not self.fallback):
            raise missing_column(where, columns, wanted, kind)
        return None

    def _said(self, column: str, kind: str) -> str:
        if column != kind:
            warnings.warn(
                f"{self.name}: {kind}s are read from the column {column!r} (another: --{kind}-column, or "
                f"{self.name}:{kind}=NAME)",
                stacklevel=6,
            )
        return column


def split_names(names: str) -> list[str]:
    """Names separated by commas, each with its own `:text=...,label=...`."""
    if exists(Path(names)):
        return [names]
    return [part.strip() for part in _NAMES.split(names) if part.strip()]


def data_stem(names: str) -> str:
    """A short name of data for a folder of results: of each file its name without folder, kind and columns."""
    return ",".join(Path(Source.parse(name).name).stem for name in split_names(names)) or "data"


def with_columns(names: str, text: str = TEXT, label: str = LABEL, encoding: str = ENCODING) -> str:
    """Names with columns and encoding behind each, unless a name has its own."""
    wanted = {"text": (text, TEXT), "label": (label, LABEL), "encoding": (encoding, ENCODING)}
    found = []
    for name in split_names(names):
        source = Source.parse(name, text, label, encoding)
        own = {"text": source.text, "label": source.label, "encoding": source.encoding}
        settings = [f"{key}={own[key]}" for key, (_, usual) in wanted.items() if own[key] != usual]
        found.append(source.name + (":" + ",".join(settings) if settings else ""))
    return ",".join(found)


def missing_column(where: str, columns: Sequence[str], column: str, kind: str) -> DataError:
    """Build the error for a column that is not there: the nearest one, and what there is."""
    near = nearest_name(column, columns)
    hint = f" (did you mean {short(near)}?)" if near else ""
    listed = ", ".join(map(name_shown, columns[:20])) + (" ..." if len(columns) > 20 else "")
    return DataError(f"{where}: no column {short(column)}{hint}; it has {listed}. Choose one with --{kind}-column")


def exists(path: Path) -> bool:
    """Is there such a file or folder? A name that cannot be one (too long, a zero byte) is none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _usual(columns: Sequence[str], names: Sequence[str], best: str) -> str | None:
    """The one column with a usual name, whatever its case; None where there is none, or more than one."""
    if best in columns:
        return best
    found = [column for column in columns if column.strip().lower() in names]
    return found[0] if len(found) == 1 else None

"""A report as one HTML file: nothing is fetched, and a browser runs no other script than the report's own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dmin.errors import printable
from dmin.files import write_atomic
from dmin.report.parts import (
    BarGroup,
    Bars,
    Cell,
    Dot,
    Items,
    Map,
    Paragraph,
    Picture,
    Section,
    Table,
    TextRow,
    Texts,
    Theme,
    confusion_matrix,
)

FOLDER = Path(__file__).parent
LOOK = FOLDER / "look.css"  # the service's page has it too
ICON = FOLDER / "icon.svg"


class Report:
    """Collects sections and writes them as one page.

    Args:
        title: what the report is about.
        summary: the result in a sentence or two.
        facts: name and value of the figures to see first.
        made_by: the command that makes it again.
    """

    def __init__(
        self, title: str, summary: str = "", *, facts: Sequence[tuple[str, str]] = (), made_by: str = ""
    ) -> None:
        self._page: dict[str, Any] = {"title": title, "summary": summary, "facts": list(facts), "made_by": made_by}
        self._sections: list[Section] = []

    def heading(self, text: str) -> None:
        """Begin a section."""
        self._sections.append(Section(text))

    def paragraph(self, text: str, *, note: bool = False) -> None:
        """Add a paragraph; a note is set smaller."""
        self._add(Paragraph(text, note))

    def items(self, lines: Sequence[str]) -> None:
        """Add a list."""
        self._add(Items(lines))

    def table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[Cell | str]],
        *,
        words: Sequence[int] = (0,),
        about: str = "",
    ) -> None:
        """Add a table that sorts; all columns but `words` are numbers; `about` names it for a screen reader."""
        cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
        numbers = frozenset(range(len(header))) - frozenset(words)
        self._add(Table(header, cells, numbers, about or self._sections[-1].title))

    def bars(self, groups: Sequence[BarGroup]) -> None:
        """Add bars from zero, in groups."""
        self._add(Bars(groups))

    def matrix(self, confusion: Mapping[tuple[str, str], int]) -> None:
        """Add a confusion matrix: (true class, answer) -> number of texts."""
        self._add(replace(confusion_matrix(confusion), about=self._sections[-1].title))

    def texts(self, header: Sequence[str], rows: Sequence[TextRow], *, words: Sequence[int]) -> None:
        """Add texts with the reason for each answer; the first column is the text, `words` names other columns of words."""
        numbers = frozenset(range(1, len(header))) - frozenset(words)
        self._add(Texts(header, rows, numbers, self._sections[-1].title))

    def picture(self, svg: str, about: str) -> None:
        """Add a figure: SVG made by this package, never a user's."""
        self._add(Picture(Markup(svg), about))  # noqa: S704 (matplotlib escapes the labels in it)

    def map(self, side: int, dots: Sequence[Dot], themes: Sequence[Theme], about: str) -> None:
        """Add texts in two dimensions with their themes."""
        self._add(Map(side, dots, themes, about))

    def html(self) -> str:
        """The page."""
        script = (FOLDER / "report.js").read_text(encoding="utf-8")
        page: str = _environment().get_template("report.html.j2").render(
            **self._page,
            sections=self._sections,
            style=_own(LOOK.read_text(encoding="utf-8") + (FOLDER / "report.css").read_text(encoding="utf-8")),
            script=_own(script),
            script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            icon=base64.b64encode(ICON.read_bytes()).decode(),
        )  # fmt: skip
        return page

    def write(self, path: Path) -> None:
        """Write the page, atomically."""
        write_atomic(path, self.html())

    def _add(self, part: object) -> None:
        if not self._sections:
            raise ValueError("a part needs a heading before it")
        self._sections[-1].parts.append(part)


def _own(text: str) -> Markup:
    """A file of this package, which is not escaped."""
    return Markup(text)  # noqa: S704


@lru_cache(maxsize=1)
def _environment() -> Any:
    """Templates that escape HTML and control characters in every value, and refuse a name that they do not know."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=StrictUndefined, finalize=_shown,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def _shown(value: Any) -> Any:
    return printable(value, keep="\n") if isinstance(value, str) and not isinstance(value, Markup) else value

"""The parts of a report: plain values that the templates show; `kind` names the macro of a part."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from markupsafe import Markup

MATRIX_CLASSES = 20  # rows of a confusion matrix; of more classes, those that were confused most
OTHERS = "(others)"
OFTEN = 0.05  # part of a class from which a confusion is coloured


def percent(share: float, digits: int = 1) -> str:
    """A share between 0 and 1 as "84.5 %"."""
    return f"{100 * share:.{digits}f} %"


@dataclass(frozen=True)
class Bar:
    """A bar from zero with its value as text beside it; `half_width` draws a confidence interval."""

    name: str
    value: float  # -1 to 1; a full bar is 1
    text: str
    half_width: float | None = None
    strong: bool = True

    @property
    def width(self) -> float:
        """Percent of the full width."""
        return 0.0 if math.isnan(self.value) else min(100.0, 100 * abs(self.value))

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends of the confidence interval in percent of the width, if there is one."""
        if self.half_width is None or math.isnan(self.half_width):
            return None
        return max(0.0, self.width - 100 * self.half_width), min(100.0, self.width + 100 * self.half_width)


@dataclass(frozen=True)
class BarGroup:
    """Bars under one title."""

    title: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    strong: bool = False
    bar: Bar | None = None


@dataclass(frozen=True)
class TextRow:
    """A text with more cells of its row, the reason for its answer, and the examples that decided as bars."""

    text: str
    cells: Sequence[str]
    reason: str
    shares: Sequence[Bar] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; a note is set smaller."""

    text: str
    note: bool = False
    kind: ClassVar[str] = "paragraph"


@dataclass(frozen=True)
class Items:
    """A list of lines."""

    lines: Sequence[str]
    kind: ClassVar[str] = "items"


@dataclass(frozen=True)
class Table:
    """A table that sorts; `numbers` are the columns of numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: frozenset[int]
    about: str
    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class Texts:
    """A table of texts that sorts, each with its reason to unfold."""

    header: Sequence[str]
    rows: Sequence[TextRow]
    numbers: frozenset[int]
    about: str
    kind: ClassVar[str] = "texts"


@dataclass(frozen=True)
class Bars:
    """Groups of bars."""

    groups: Sequence[BarGroup]
    kind: ClassVar[str] = "bars"


@dataclass(frozen=True)
class MatrixCell:
    """A cell of a confusion matrix; `shade` is its colour, none where it is empty."""

    text: str
    shade: str = ""
    about: str = ""


@dataclass(frozen=True)
class Matrix:
    """A confusion matrix."""

    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[MatrixCell]]]
    note: str
    about: str = "Confusion matrix"
    kind: ClassVar[str] = "matrix"


@dataclass(frozen=True)
class Picture:
    """A figure as SVG that was made here, and what it shows in words."""

    svg: Markup
    about: str
    kind: ClassVar[str] = "picture"


@dataclass(frozen=True)
class Dot:
    """A text on a map."""

    x: str
    y: str
    group: int
    colour: str
    about: str


@dataclass(frozen=True)
class Theme:
    """A group of texts beside a map; `group` is None where its dots cannot be chosen."""

    name: str
    size: str
    words: str
    texts: Sequence[str]
    group: int | None
    colour: str


@dataclass(frozen=True)
class Map:
    """Texts in two dimensions and the themes that they belong to."""

    side: int
    dots: Sequence[Dot]
    themes: Sequence[Theme]
    about: str
    kind: ClassVar[str] = "map"


@dataclass
class Section:
    """A card of the page."""

    title: str
    parts: list[object] = field(default_factory=list)


def confusion_matrix(confusion: Mapping[tuple[str, str], int], most: int = MATRIX_CLASSES) -> Matrix:
    """Answers by true class; of more than `most` classes, those that were confused most, with the rest in one column.

    Args:
        confusion: (true class, answer) -> number of texts; an answer need not be a class.
        most: the number of classes that a reader can take in.
    """
    true_classes = sorted({true for true, _ in confusion})
    answers = sorted({answer for _, answer in confusion})
    confused: Counter[str] = Counter()
    for (true, answer), count in confusion.items():
        if true != answer:
            confused.update({true: count, answer: count})
    chosen, note = true_classes, ""
    if len(true_classes) > most:
        chosen = sorted(sorted(true_classes, key=lambda name: -confused[name])[:most])
        note = f"The {most} of {len(true_classes)} classes that were confused most."
    known = set(true_classes)
    columns = [*chosen, *[name for name in answers if name not in known][:most]]  # refused, or a class without texts
    shown = set(columns)
    rest = any(count and true in chosen and answer not in shown for (true, answer), count in confusion.items())
    rows = []
    for true in chosen:
        counts = {answer: count for (own, answer), count in confusion.items() if own == true}
        cells = [_matrix_cell(true, name, counts.get(name, 0), sum(counts.values())) for name in columns]
        if rest:
            others = sum(count for answer, count in counts.items() if answer not in shown)
            cells.append(_matrix_cell(true, OTHERS, others, sum(counts.values())))
        rows.append((true, cells))
    return Matrix([*columns, OTHERS] if rest else columns, rows, note)


def _matrix_cell(true: str, answer: str, count: int, total: int) -> MatrixCell:
    if not count:
        return MatrixCell("·")
    wrong = "w1" if count >= OFTEN * total else "w0"
    shade = f"m{min(3, 1 + int(2.99 * count / total))}" if true == answer else wrong
    return MatrixCell(str(count), shade, f"{true} answered as {answer}: {count} of {total}")

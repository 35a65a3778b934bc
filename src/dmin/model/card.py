"""The card (README.md) of a trained model: data, settings, what was measured, how to use it."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from dmin.errors import printable
from dmin.files import read_document
from dmin.methods import method_class
from dmin.model.head_file import HeadInfo

_SHOWN = 12
_OPEN = '```python\nfrom dmin import FewShotClassifier\n\nclassifier = FewShotClassifier("this/folder")\n'
_FROM_EXAMPLES = (
    "Give it a few examples of each class and it classifies; nothing is trained at that moment.\n\n"
    f'{_OPEN}classifier.fit({{"refund": ["I want my money back"], "parcel": ["where is my order"]}})\n'
    'classifier.predict(["please return what I paid"])\n```\n'
)
_OWN_CLASSES = (
    "It answers the classes that it was trained on, without examples; others can be added beside them.\n\n"
    f'{_OPEN}classifier.predict(["please return what I paid"])\n'
    'classifier.add_class("gift_wrapping", ["can you wrap it as a present"])\n```\n'
)


def model_card(info: HeadInfo, cells: list[Mapping[str, Any]] | None = None, notes: str = "") -> str:
    """Markdown for a head: `cells` are those of `summary.json`, `notes` what else there is to say (data, licences)."""
    title = method_class(info.method).title
    trained = "\n".join(f"- {_plain(key)}: {_value(value)}" for key, value in info.trained_on.items())
    names = ", ".join(map(_plain, info.base_classes[:_SHOWN]))
    if len(info.base_classes) > _SHOWN:
        names += f" and {len(info.base_classes) - _SHOWN} more (`head.json` lists them)"
    parts = [
        "---\nlibrary_name: dmin\npipeline_tag: text-classification\ntags: [few-shot, text-classification, dmin]\n---\n",
        f"# {title}, a few-shot text classifier\n",
        _OWN_CLASSES if info.trained_on.get("all_classes") else _FROM_EXAMPLES,
        (
            f"## Trained on\n\n{trained}\n- method: {info.method}, options {_value(info.options)}\n"
            f"- {len(info.base_classes)} base classes: {names}\n"
        ),
    ]
    if cells:
        rows = [
            f"| {_plain(cell['method'])} | {cell['way']}-way {cell['shot']}-shot | {100 * cell['accuracy']:.1f} ± "
            f"{100 * cell['ci95']:.1f} | {cell['episodes']} |"
            for cell in cells
        ]
        parts.append(
            "## Measured\n\nAccuracy in % on classes never trained on, 95 % confidence interval over episodes.\n\n"
            "| method | setting | accuracy | episodes |\n|---|---|---:|---:|\n" + "\n".join(rows) + "\n"
        )
    if info.calibration:
        parts.append(
            f"## Calibration\n\nFitted on {info.calibration['tasks']} tasks of validation classes: a class's name is worth "
            f"{info.calibration['name_weight']:.2f} examples.\n"
        )
    if notes:
        parts.append(notes.strip() + "\n")
    return "\n".join(parts)


class CellDocument(BaseModel):
    """A cell of `summary.json`; fields that a later version may add are ignored."""

    model_config = ConfigDict(strict=True)

    method: str
    way: int
    shot: int
    episodes: int
    accuracy: Annotated[float, Field(ge=0, le=1)]
    ci95: float


class SummaryDocument(BaseModel):
    """What is read of `summary.json`."""

    model_config = ConfigDict(strict=True)

    method: str
    data: str
    split: str
    cells: list[CellDocument]


def read_cells(run: Path) -> list[Mapping[str, Any]] | None:
    """The cells of a run's `summary.json`, if it was evaluated."""
    path = run / "summary.json"
    return [cell.model_dump() for cell in read_document(path, SummaryDocument).cells] if path.is_file() else None


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{_plain(key)}={_plain(inner)}" for key, inner in value.items()) or "none"
    return ", ".join(map(_plain, value)) if isinstance(value, list) else _plain(value)


def _plain(value: object) -> str:
    """A name from the data as it stands in Markdown: no control characters, no HTML."""
    return escape(printable(value), quote=False)

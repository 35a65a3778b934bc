"""The card (README.md) of a saved classifier, as the Hugging Face hub shows it."""

from __future__ import annotations

from html import escape

from dmin.classifier.state import State
from dmin.errors import printable

_SHOWN = 50


def classifier_card(state: State) -> str:
    """The card as Markdown: classes with their numbers of examples, how to load it, what is refused."""
    entries, settings = state.knowledge.classes, state.settings
    table = "\n".join(f"| {_cell(entry.label)} | {len(entry.examples)} |" for entry in entries[:_SHOWN])
    more = f"\n\nand {len(entries) - _SHOWN} more classes." if len(entries) > _SHOWN else ""
    method, encoder = state.model.method, state.model.encoder
    refusal = "nothing" if settings.reject is None else f"`reject={printable(repr(settings.reject)).replace('`', '')}`"
    if settings.keep_base:
        refusal += f"; {len(state.base_classes)} base classes of the model are answered too"
    return f"""---
library_name: dmin
pipeline_tag: text-classification
tags: [few-shot, text-classification, dmin]
---

# Few-shot classifier of {len(entries)} classes

Made by [dmin](https://pypi.org/project/dmin/): {method.title} over
{f"an encoder of width {encoder.width}" if encoder else "vectors of the application's own encoder"}; nothing was trained on
these classes, their examples are kept in the folder.

```python
from dmin import FewShotClassifier

classifier = FewShotClassifier.load("this/folder")
classifier.predict(["a new text"])
```

| class | examples |
|---|---:|
{table}{more}

Refused: {refusal}. Names of classes {"take" if state.names_on else "do not take"} part.

The examples themselves are part of the folder (`classifier.json`): do not publish it if they are private.
"""


def _cell(label: object) -> str:
    """A label as it stands in a table: no control characters, no HTML, and signs of Markdown as they are."""
    text = escape(printable(label), quote=False).replace("\\", "\\\\")
    for sign in "|`*_[]":
        text = text.replace(sign, "\\" + sign)
    return text

"""The card (README.md) of a saved classifier, as the Hugging Face hub shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dmin.classifier.few_shot import FewShotClassifier

_SHOWN = 50


def classifier_card(classifier: FewShotClassifier) -> str:
    """Markdown: what it answers, from how many examples, how to load it, what it refuses."""
    entries = classifier._knowledge.classes
    rows = "\n".join(f"| {_cell(entry.label)} | {len(entry.examples)} |" for entry in entries[:_SHOWN])
    more = f"\n\nand {len(entries) - _SHOWN} more classes." if len(entries) > _SHOWN else ""
    method, encoder = classifier._model.method, classifier.encoder_
    refusal = "nothing" if classifier.reject is None else f"`reject={classifier.reject!r}`"
    if classifier.keep_base:
        refusal += f"; {len(classifier.base_classes_)} base classes of the model are answered too"
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
{rows}{more}

Refused: {refusal}. Names of classes {"take" if classifier._names_on else "do not take"} part.

The examples themselves are part of the folder (`classifier.json`): do not publish it if they are private.
"""


def _cell(label: object) -> str:
    return str(label).replace("|", "\\|").replace("\n", " ")

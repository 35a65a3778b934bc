"""From a class's texts to what a classifier keeps of it: vectors, and what the method makes of each on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from dmin.classifier.examples import warn_of_contradictions
from dmin.classifier.scoring import Model
from dmin.classifier.state import ClassSupport, Knowledge
from dmin.methods import prepared_scoring


def learn_classes(
    model: Model, groups: Mapping[Any, Sequence[str]], names: Mapping[Any, str | None], before: Knowledge
) -> list[ClassSupport]:
    """Encode each class's examples and name; rows that are known already are kept, not encoded again.

    Args:
        model: what encodes.
        groups: the examples of each class, known ones among them.
        names: what stands beside the examples of each class as its name or description, if anything.
        before: what is known.
    """
    rows = {label: [*texts, *filter(None, [names[label]])] for label, texts in groups.items()}
    warn_of_contradictions(rows, before)
    known = {
        (label, text): (entry.vectors[row], entry.prepared[row])
        for label in rows
        if (entry := before.by_label.get(label))
        for row, text in enumerate(entry.texts)
    }
    fresh = [(label, text) for label, texts in rows.items() for text in texts if (label, text) not in known]
    vectors = model.vectors([text for _, text in fresh], before.width)
    with torch.no_grad():
        prepared = prepared_scoring(model.method).prepare(vectors)
    known |= {key: (vectors[row], prepared[row]) for row, key in enumerate(fresh)}
    found = []
    for label, texts in rows.items():
        vector, ready = zip(*(known[label, text] for text in texts), strict=True)
        found.append(ClassSupport(label, tuple(texts), bool(names[label]), torch.stack(vector), torch.stack(ready)))
    return found

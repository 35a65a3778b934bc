"""A few classes, and a quick encoder for what does not depend on meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dmin import FewShotClassifier

EXAMPLES = {
    "refund": ["I want my money back", "please return what I paid", "when do I get reimbursed"],
    "parcel": ["where is my order", "my package has not arrived"],
    "weather": ["will it rain tomorrow"],
}
PAIRS = [(text, label) for label, texts in EXAMPLES.items() for text in texts]


def letters(texts: Sequence[str]) -> Any:
    """Counts of letters."""
    alphabet = "abcdefghijklmnopqrstuvwxyz "
    return np.array([[1.0 + text.lower().count(letter) for letter in alphabet] for text in texts])


def quick(**options: Any) -> FewShotClassifier:
    return FewShotClassifier(encoder=letters, use_names=options.pop("use_names", False), **options)


class Interrupting:
    """An encoder during whose next call something else happens."""

    def __init__(self) -> None:
        self.then: Callable[[], object] | None = None

    def __call__(self, texts: Sequence[str]) -> Any:
        then, self.then = self.then, None
        if then is not None:
            then()
        return letters(texts)

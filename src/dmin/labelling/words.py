"""Words that set a cluster apart (c-TF-IDF, as in BERTopic), and a name made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_PATTERN = r"(?u)\b[^\W\d_]{2,}\b"
_NAME_WORDS = 2


def telling_words(texts: Sequence[str], assigned: Any, count: int, most: int = 8) -> list[list[str]]:
    """For each of `count` clusters the words that are frequent in it and rare elsewhere, best first.

    c-TF-IDF: the frequency of a word in the cluster times log(1 + mean words per cluster / frequency of the word in all).
    """
    import scipy.sparse as sparse
    from sklearn.feature_extraction.text import CountVectorizer

    kept = np.flatnonzero(np.asarray(assigned) >= 0)
    counter = CountVectorizer(token_pattern=_PATTERN, stop_words="english", max_features=50_000)
    try:
        words = counter.fit_transform([texts[int(row)] for row in kept])  # [n, v]
    except ValueError:  # no words at all: numbers, signs, or stop words only
        return [[] for _ in range(count)]
    belongs = sparse.csr_matrix(
        (np.ones(len(kept)), (np.asarray(assigned)[kept], np.arange(len(kept)))), shape=(count, len(kept))
    )
    # A word repeated within one text says no more than once.
    frequency = np.asarray((belongs @ (words > 0)).todense(), dtype=float)  # [k, v]
    totals = frequency.sum(axis=0)  # [v]
    inverse = np.log1p(frequency.sum() / max(1, count) / totals)
    scores = frequency / np.maximum(frequency.sum(axis=1, keepdims=True), 1) * inverse  # [k, v]
    names = counter.get_feature_names_out()
    ranked = np.argsort(-scores, axis=1, kind="stable")[:, :most]
    return [[str(names[place]) for place in row if scores[cluster, place] > 0] for cluster, row in enumerate(ranked)]


def propose_names(words: Sequence[Sequence[str]]) -> list[str]:
    """A different name for each cluster: its first words, more of them where two clusters would be called the same."""
    names: list[str] = []
    for place, found in enumerate(words, 1):
        name = f"theme_{place}"
        for length in range(min(_NAME_WORDS, max(1, len(found))), len(found) + 1):
            name = "_".join(found[:length])
            if name not in names:
                break
        while not name or name in names:
            name = f"{name or 'theme'}_{place}"
        names.append(name)
    return names

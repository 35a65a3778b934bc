"""Checks of labelled texts before use: counts, lengths, duplicates, contradictions, small classes."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from dmin.data.corpus import Corpus, plain_text


@dataclass(frozen=True)
class CorpusReport:
    """What `check_corpus` found."""

    texts: int
    classes: int
    smallest: tuple[str, int]  # class, number of texts
    largest: tuple[str, int]
    median: float
    shortest: str
    longest: str
    mean_words: float
    duplicates: list[tuple[str, str, int]]  # text, class, times
    contradictions: list[tuple[str, list[str]]]  # text, classes
    too_small: list[tuple[str, int]]  # class, number of texts

    @property
    def problems(self) -> int:
        """Number of findings."""
        return len(self.duplicates) + len(self.contradictions) + len(self.too_small)


def check_corpus(corpus: Corpus, needed: int) -> CorpusReport:
    """Check a corpus; `needed` is K + queries, the texts that a class must have for an episode.

    Texts are compared ignoring case and white space.
    """
    sizes = {label: len(rows) for label, rows in corpus.by_class.items()}
    ordered = sorted(sizes.values())
    middle = len(ordered) // 2
    pairs = Counter((plain_text(text), label) for text, label in zip(corpus.texts, corpus.labels, strict=True))
    labels_of: dict[str, set[str]] = defaultdict(set)
    for text, label in pairs:
        labels_of[text].add(label)
    return CorpusReport(
        texts=len(corpus.texts),
        classes=len(sizes),
        smallest=min(sizes.items(), key=lambda item: item[1]),
        largest=max(sizes.items(), key=lambda item: item[1]),
        median=ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2,
        shortest=min(corpus.texts, key=len),
        longest=max(corpus.texts, key=len),
        mean_words=sum(len(text.split()) for text in corpus.texts) / len(corpus.texts),
        duplicates=[(text, label, times) for (text, label), times in pairs.items() if times > 1],
        contradictions=[(text, sorted(labels)) for text, labels in labels_of.items() if len(labels) > 1],
        too_small=[(label, size) for label, size in sizes.items() if size < needed],
    )

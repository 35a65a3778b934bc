"""Several data sets as one, and texts left out of it by what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dmin.data.corpus import Corpus
from dmin.data.splits import ClassSplit
from dmin.errors import DataError


def join_corpora(corpora: Sequence[Corpus]) -> Corpus:
    """One corpus of several; a class is called SET/CLASS, and remembers its set."""
    names = [corpus.name for corpus in corpora]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"the same data set is given twice: {', '.join(twice)}")
    texts = tuple(text for corpus in corpora for text in corpus.texts)
    labels = tuple(f"{corpus.name}/{label}" for corpus in corpora for label in corpus.labels)
    origin = {f"{corpus.name}/{label}": corpus.name for corpus in corpora for label in corpus.classes}
    return Corpus("+".join(names), texts, labels, origin=origin)


def leave_out(corpus: Corpus, texts: Iterable[str]) -> Corpus:
    """The corpus without these texts, whatever their case and white space; classes left empty leave the splits too."""
    unwanted = {plain_text(text) for text in texts}
    kept = [index for index, text in enumerate(corpus.texts) if plain_text(text) not in unwanted]
    if len(kept) == len(corpus.texts):
        return corpus
    labels = tuple(corpus.labels[index] for index in kept)
    there = set(labels)
    splits = {
        name: ClassSplit(*(tuple(c for c in split.part(part) if c in there) for part in ("train", "valid", "test")))
        for name, split in corpus.splits.items()
    }
    return replace(corpus, texts=tuple(corpus.texts[index] for index in kept), labels=labels, splits=splits)


def plain_text(text: str) -> str:
    """A text as it is compared: lower case, single spaces."""
    return " ".join(text.lower().split())

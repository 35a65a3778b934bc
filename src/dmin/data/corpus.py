"""`Corpus`: labelled texts, validated once, with a fingerprint; joining corpora and leaving texts out."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dmin.data.labels import name_text, near_misses
from dmin.data.splits import ClassSplit
from dmin.errors import DataError, unknown_name
from dmin.files import short


@dataclass(frozen=True)
class Corpus:
    """Texts with one label each, in a fixed order.

    Args:
        name: its name in tables and messages.
        texts: the texts, none empty.
        labels: the class of each text.
        splits: named class splits that come with the data.
        default_split: the split taken when none is named.
        origin: the data set of each class, where several are joined as SET/CLASS.
        hidden: indices of texts that are kept aside: `by_class` does not list them.
    """

    name: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    splits: Mapping[str, ClassSplit] = field(default_factory=dict)
    default_split: str | None = None
    origin: Mapping[str, str] = field(default_factory=dict)
    hidden: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels):
            raise DataError(f"{self.name}: {len(self.texts)} texts but {len(self.labels)} labels")
        if not self.texts:
            raise DataError(f"{self.name} holds no texts")
        for index, (text, label) in enumerate(zip(self.texts, self.labels, strict=True)):
            if not isinstance(text, str):
                raise DataError(
                    f"{self.name}: text {index + 1} (class {short(label)}) is {short(text)}, not a string; quote it"
                )
            if not text.strip():
                raise DataError(f"{self.name}: text {index + 1} (class {label!r}) is empty")
            if not isinstance(label, str) or not label.strip():
                raise DataError(f"{self.name}: text {index + 1} ({text[:40]!r}) has no label")
            if label != label.strip():
                raise DataError(
                    f"{self.name}: the label {short(label)} begins or ends with white space; write {label.strip()!r}"
                )
        for name, split in self.splits.items():
            split.check(name, self.classes)

    @classmethod
    def from_mapping(cls, examples: Mapping[str, Sequence[str]], name: str = "examples") -> Corpus:
        """Build a corpus from `{label: [texts]}`."""
        for label, texts in examples.items():
            if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
                raise DataError(f"{name}: class {label!r} holds {short(texts)}; a list of texts is needed")
            if not list(texts):
                raise DataError(f"{name}: class {label!r} has no example")
        pairs = [(text, str(label)) for label, texts in examples.items() for text in texts]
        return cls(name, tuple(text for text, _ in pairs), tuple(label for _, label in pairs))

    @cached_property
    def by_class(self) -> dict[str, tuple[int, ...]]:
        """The indices of each class's texts; classes in order of first appearance."""
        rows: dict[str, list[int]] = {}
        for index, label in enumerate(self.labels):
            kept = rows.setdefault(label, [])
            if index not in self.hidden:
                kept.append(index)
        return {label: tuple(indices) for label, indices in rows.items()}

    @property
    def examples(self) -> dict[str, list[str]]:
        """The texts of each class: `{label: [texts]}`."""
        return {label: [self.texts[row] for row in rows] for label, rows in self.by_class.items()}

    def rows_of(self, classes: Iterable[str]) -> list[int]:
        """The indices of all texts of some classes, class by class."""
        return [row for label in classes for row in self.by_class[label]]

    def hiding(self, rows: Iterable[int]) -> Corpus:
        """A copy with the same texts under the same indices, where `by_class` does not list some of them."""
        return replace(self, hidden=frozenset(rows))

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names."""
        return tuple(self.by_class)

    def name_of(self, label: str) -> str:
        """A class's name as words, without the name of its data set."""
        return name_text(label.removeprefix(f"{self.origin[label]}/") if label in self.origin else label)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of texts and labels in order; stored episodes refer to it."""
        digest = hashlib.sha256()
        for text, label in zip(self.texts, self.labels, strict=True):
            digest.update(f"{len(text)}:{text}{len(label)}:{label}".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def split(self, name: str | None = None) -> ClassSplit:
        """Return a class split by name, or the default one."""
        chosen = name or self.default_split
        if chosen is None:
            raise DataError(f"{self.name} comes without a class split: give --split-seed and --split-sizes")
        if chosen not in self.splits:
            if not self.splits:
                raise DataError(f"{self.name} has no class split {chosen!r}: give --split-seed instead")
            raise unknown_name(f"split of {self.name}", chosen, self.splits)
        return self.splits[chosen]

    def large_enough(self, classes: Iterable[str], needed: int) -> tuple[list[str], list[str]]:
        """Sort classes into those with at least `needed` texts and those with fewer."""
        enough: list[str] = []
        small: list[str] = []
        for label in classes:
            (enough if len(self.by_class[label]) >= needed else small).append(label)
        return enough, small


def join_corpora(corpora: Sequence[Corpus]) -> Corpus:
    """Join corpora into one, whose classes are called SET/CLASS (see `Corpus.origin`)."""
    names = [corpus.name for corpus in corpora]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"the same data set is given twice: {', '.join(twice)}")
    texts = tuple(text for corpus in corpora for text in corpus.texts)
    labels = tuple(f"{corpus.name}/{label}" for corpus in corpora for label in corpus.labels)
    origin = {f"{corpus.name}/{label}": corpus.name for corpus in corpora for label in corpus.classes}
    return Corpus("+".join(names), texts, labels, origin=origin)


def leave_out(corpus: Corpus, texts: Iterable[str]) -> Corpus:
    """Remove texts, ignoring case and white space; classes that become empty are removed from the splits too."""
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


def without_near_misses(corpus: Corpus, classes: Iterable[str]) -> Corpus:
    """A copy without texts whose label is one letter off one of `classes`; a warning names each such label.

    Such a label is most likely a slip. Counted as a class of its own, its texts would be out-of-scope by mistake.
    """
    wrong = near_misses(corpus.classes, classes)
    if not wrong:
        return corpus
    kept = [index for index, label in enumerate(corpus.labels) if label not in wrong]
    named = [f"{label!r} ({corpus.labels.count(label)} texts; {near!r}?)" for label, near in wrong.items()]
    said = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
    if not kept:
        raise DataError(f"{corpus.name}: every label is a letter off a class: {said}; correct them")
    warnings.warn(f"{corpus.name}: labels one letter off a class are left out; correct them: {said}", stacklevel=3)
    texts, labels = (tuple(column[index] for index in kept) for column in (corpus.texts, corpus.labels))
    return Corpus(corpus.name, texts, labels)


def plain_text(text: str) -> str:
    """Normalise a text for comparison: lower case, single spaces."""
    return " ".join(text.lower().split())

"""Diagnosis of the support set: what is wrong with the examples, and which to add next."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any

from dmin.classifier.knowledge import Knowledge
from dmin.classifier.left_out import leave_each_out
from dmin.classifier.scoring import Model
from dmin.data.corpus import plain_text
from dmin.errors import printable

FEW = 3  # examples below which a class is thin
MARGIN = 0.02  # cosine by which another class must be nearer before an example is doubted
_SHOWN = 8


@dataclass(frozen=True)
class Doubt:
    """An example that lies nearer to another class than to its own without it."""

    text: str
    label: Hashable
    nearer: Hashable
    own: float  # cosine to its own class without itself
    other: float


@dataclass(frozen=True)
class Advice:
    """A class whose next examples would help most."""

    label: Hashable
    reason: str
    urgency: float


@dataclass(frozen=True)
class SupportReport:
    """What `FewShotClassifier.check` found."""

    classes: int
    examples: int
    repeated: tuple[tuple[str, Hashable, int], ...]  # text, class, times
    contradictory: tuple[tuple[str, tuple[Hashable, ...]], ...]  # text, classes
    doubtful: tuple[Doubt, ...]  # strongest doubt first
    overlapping: tuple[tuple[Hashable, Hashable, int], ...]  # two classes, examples nearer to the other one
    thin: tuple[tuple[Hashable, int], ...]  # class, number of examples
    advice: tuple[Advice, ...]  # most urgent first

    @property
    def problems(self) -> int:
        """Number of findings."""
        found = (self.repeated, self.contradictory, self.doubtful, self.overlapping, self.thin)
        return sum(map(len, found))

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def __str__(self) -> str:
        show = printable
        lines = [f"{self.classes} classes, {self.examples} examples: {self.problems or 'no'} findings"]
        blocks = [
            ("given twice", [f"{text!r} in {show(label)} ({times} x)" for text, label, times in self.repeated]),
            ("under two classes", [f"{text!r}: {', '.join(map(show, labels))}" for text, labels in self.contradictory]),
            (
                "nearer to another class (mislabelled?)",
                [
                    f"{d.text!r} is in {show(d.label)} ({d.own:.2f}), nearer to {show(d.nearer)} ({d.other:.2f})"
                    for d in self.doubtful
                ],
            ),
            ("classes that overlap", [f"{show(one)} / {show(two)}: {n} examples" for one, two, n in self.overlapping]),
            (f"classes with fewer than {FEW} examples", [f"{show(label)} ({size})" for label, size in self.thin]),
            ("add examples next to", [f"{show(item.label)}: {show(item.reason)}" for item in self.advice]),
        ]
        for title, findings in blocks:
            if findings:
                lines.append(f"{title}:")
                lines += [f"  {finding}" for finding in findings[:_SHOWN]]
                lines += [f"  and {len(findings) - _SHOWN} more"] if len(findings) > _SHOWN else []
        return "\n".join(lines)


def examine(knowledge: Knowledge, model: Model) -> SupportReport:
    """Compare every example with its own class without it, and with all the others."""
    repeated, contradictory = _texts(knowledge)
    doubts, judged, mistaken = _doubts(knowledge, model)
    pairs: Counter[frozenset[Hashable]] = Counter(frozenset((d.label, d.nearer)) for d in doubts)
    order = {label: place for place, label in enumerate(knowledge.labels)}
    overlapping = []
    for pair, count in pairs.most_common():
        one, two = sorted(pair, key=lambda label: order[label])
        if count > 1:
            overlapping.append((one, two, count))
    sizes = {entry.label: len(entry.examples) for entry in knowledge.classes}
    thin = [(label, size) for label, size in sizes.items() if size < FEW]
    return SupportReport(
        classes=len(knowledge.classes),
        examples=sum(sizes.values()),
        repeated=tuple(repeated),
        contradictory=tuple(contradictory),
        doubtful=tuple(sorted(doubts, key=lambda doubt: doubt.own - doubt.other)),
        overlapping=tuple(overlapping),
        thin=tuple(thin),
        advice=tuple(_advice(sizes, judged, mistaken)),
    )


def _texts(
    knowledge: Knowledge,
) -> tuple[list[tuple[str, Hashable, int]], list[tuple[str, tuple[Hashable, ...]]]]:
    """Texts given twice in a class, and texts under two classes, whatever their case and white space."""
    counts = Counter((plain_text(text), entry.label) for entry in knowledge.classes for text in entry.examples)
    owners: dict[str, list[Hashable]] = defaultdict(list)
    for text, label in counts:
        owners[text].append(label)
    repeated = [(text, label, times) for (text, label), times in counts.items() if times > 1]
    return repeated, [(text, tuple(labels)) for text, labels in owners.items() if len(labels) > 1]


def _doubts(
    knowledge: Knowledge, model: Model
) -> tuple[list[Doubt], Counter[Hashable], dict[Hashable, Counter[Hashable]]]:
    """Examples nearer to another class; how many of each class could be judged; what each class is mistaken for."""
    doubts: list[Doubt] = []
    judged: Counter[Hashable] = Counter()
    mistaken: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
    for found in leave_each_out(knowledge, model):
        label, nearer = found.entry.label, knowledge.labels[found.nearest]
        judged[label] += 1
        if found.other > found.own:
            mistaken[label][nearer] += 1
        if found.other > found.own + MARGIN:
            doubts.append(Doubt(found.entry.examples[found.row], label, nearer, found.own, found.other))
    return doubts, judged, mistaken


def _advice(
    sizes: dict[Hashable, int], judged: Counter[Hashable], mistaken: dict[Hashable, Counter[Hashable]]
) -> list[Advice]:
    """Where an example gains most: classes whose own examples are mistaken for others, and thin ones."""
    advice = []
    for label, size in sizes.items():
        wrong = sum(mistaken[label].values()) if label in mistaken else 0
        rate = wrong / judged[label] if judged[label] else 0.0
        urgency = rate / (1 + size) ** 0.5 + (FEW - size) / FEW * 0.5 * (size < FEW)
        if not urgency:
            continue
        parts = [f"{size} example{'s' if size != 1 else ''}"]
        if wrong:
            partner = mistaken[label].most_common(1)[0][0]
            parts.append(f"{wrong} of {judged[label]} nearer to another class, most often {partner}")
        advice.append(Advice(label, "; ".join(parts), round(urgency, 4)))
    return sorted(advice, key=lambda item: -item.urgency)

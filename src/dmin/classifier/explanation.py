"""Why a text got its label: readable in a terminal, as a dict, and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from html import escape
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What `FewShotClassifier.answer` says about one text."""

    label: Any  # what predict answers: the class, or the unknown label
    score: float  # cosine of the nearest class
    probability: float  # of the nearest class
    refused: bool
    top: tuple[tuple[Any, float], ...]  # the most similar classes with their cosines, best first


@dataclass(frozen=True)
class Share:
    """One support row's part in the decision."""

    text: str
    share: float  # exact: the shares of a class add up to its score; not a number where a method cannot tell
    without: float  # the class's score if this row were not there
    is_name: bool = False


@dataclass(frozen=True)
class Explanation:
    """The decision for one text."""

    text: str
    label: Hashable  # what predict answers: the class, or the unknown label
    nearest: Hashable  # the class with the highest score
    score: float  # its raw similarity
    runner_up: Hashable | None
    runner_up_score: float | None
    threshold: float | None  # below which the text is refused
    examples: tuple[Share, ...]  # of the nearest class, largest share first
    memory: tuple[
        tuple[str, float], ...
    ] = ()  # base classes that shaped the nearest class's vectors, with their weight

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "text": self.text, "label": self.label, "nearest": self.nearest, "score": self.score,
            "runner_up": self.runner_up, "runner_up_score": self.runner_up_score, "threshold": self.threshold,
            "examples": [{name: _number(value) for name, value in asdict(share).items()} for share in self.examples],
            "memory": [[name, weight] for name, weight in self.memory],
        }  # fmt: skip

    def __str__(self) -> str:
        refused = (
            "" if self.threshold is None or self.score >= self.threshold else f" (refused: below {self.threshold:.2f})"
        )
        lines = [f"{self.text!r} -> {self.label}   score {self.score:.3f} of {self.nearest}{refused}"]
        if self.runner_up is not None:
            lines.append(f"  runner-up: {self.runner_up} ({self.runner_up_score:.3f})")
        for share in self.examples:
            kind = "name" if share.is_name else "example"
            alone = "" if math.isnan(share.without) else f"   (without it: {share.without:.3f})"
            lines.append(f"  {_share(share.share)}  {kind}: {share.text}{alone}")
        if self.memory:
            lines.append("  memory: " + ", ".join(f"{name} {weight:+.2f}" for name, weight in self.memory))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{_share(share.share)}</td><td>{share.without:.3f}</td>"
            f"<td>{'<i>name</i> ' if share.is_name else ''}{escape(share.text)}</td></tr>"
            for share in self.examples
        )
        runner = (
            f", runner-up {escape(str(self.runner_up))} ({self.runner_up_score:.3f})"
            if self.runner_up is not None
            else ""
        )
        memory = ", ".join(f"{escape(name)} {weight:+.2f}" for name, weight in self.memory)
        memory = f"<p><small>memory: {memory}</small></p>" if memory else ""
        return (
            f"<p>“{escape(self.text)}” → <b>{escape(str(self.label))}</b> "
            f"({escape(str(self.nearest))} {self.score:.3f}{runner})</p>"
            f"<table><tr><th>share</th><th>without it</th><th>example</th></tr>{rows}</table>{memory}"
        )


def _share(share: float) -> str:
    return "  ?   " if math.isnan(share) else f"{share:+.3f}"


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value

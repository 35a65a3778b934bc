"""Which episodes a model is evaluated on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dmin.data import ClassSplit, Corpus
from dmin.files import safe_name


@dataclass(frozen=True)
class EvaluationPlan:
    """Which episodes to evaluate on."""

    corpus: Corpus
    split_name: str
    split: ClassSplit
    ways: Sequence[int]
    shots: Sequence[int]
    episodes: int = 300
    queries: int = 10
    part: str = "test"

    def file_name(self, way: int, shot: int) -> str:
        """Where a setting's episodes are stored; every figure that decides them is in the name."""
        counts = f"{way}way-{shot}shot-{self.queries}queries-{self.episodes}episodes"
        return safe_name(f"{self.corpus.name}-{self.split_name}-{self.part}-{counts}") + ".json"

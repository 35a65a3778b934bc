"""What the parts of learning from unlabelled texts bring, on development tasks (texts of the pool only): see KINDS.md.

    python -m reproduce.kinds_votes run [SET ...]     a line per task -> runs/kinds/votes.jsonl
    python -m reproduce.kinds_votes table             the table of KINDS.md

The constants of `dmin.adaptive.unlabelled` were chosen on tasks like these of other draws. What a set's row is measured
with never saw the set, as in `kinds.py`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np

from dmin.adaptive import Head, Recipe, Spread, fit_head, learn_unlabelled
from dmin.adaptive import unlabelled as learning
from dmin.adaptive.logistic import one_hot
from dmin.adaptive.unlabelled import soft_labels, softmax
from reproduce.kinds import vectors_of
from reproduce.kinds_constants import spread_without
from reproduce.kinds_data import SETS, KindSet, Vectors, generator
from reproduce.kinds_lines import PAGE, Line, grouped, lines_of, markdown, put_table, restart, write

SHOTS = (1, 5, 10)
PILES = (("even", 10), ("even", 40), ("uneven", 40), ("few", 40), ("unknown", 20))  # kind, texts per class
DRAWS = (40, 41)
MOST_NEW = 3000
TITLES = {
    "learned": "logistic part alone", "uneven votes": "votes, not evened", "always": "votes at full weight",
    "adapted": "`adapt`", "graph": "the graph's own answers",
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """Vectors of a task: some classes, a pile, and texts that are not in it."""

    head: Head
    pile: Any  # [m, d]
    known: Any  # places of the pile's texts that belong to a class
    pile_labels: Any  # of these
    new: Any  # [L, d]
    new_labels: Any

    def gains(self, head: Head) -> tuple[float, float]:
        """Accuracy in % on the pile's texts that belong to a class, and on new texts."""
        view = self.head.view
        return (
            right(np.asarray(head.scores(view(self.pile[self.known]))), self.pile_labels),
            right(np.asarray(head.scores(view(self.new))), self.new_labels),
        )


def right(scores: Any, labels: Any) -> float:
    """Accuracy in %."""
    return 100 * float((scores.argmax(axis=1) == labels).mean())


def tasks(found: KindSet, vectors: Vectors, spread: Spread) -> Iterator[tuple[dict[str, Any], Task]]:
    """Every number of examples, draw, kind of pile, with and without names."""
    queries, examples = found.development()
    for shot in SHOTS:
        for number in DRAWS:
            support = [generator(found.name, "votes", number, c).permutation(e)[:shot] for c, e in enumerate(examples)]
            for kind, per in PILES:
                chosen = np.arange(len(found.classes))
                if kind == "unknown":  # 30 % of the pile belongs to no class
                    chosen = np.sort(
                        generator(found.name, "known", number).permutation(chosen)[: round(0.7 * len(chosen))]
                    )
                for named in (False, True):
                    head = fit_head(Recipe(), [spread], *rows_of(found, vectors, support, chosen, named))
                    rows, owners = pile_of(found, examples, support, kind, per, number)
                    key = {"set": found.name, "shot": shot, "draw": number, "pile": kind, "per": per, "names": named}
                    yield key, task_of(found, vectors, head, chosen, rows, owners, queries)


def rows_of(
    found: KindSet, vectors: Vectors, support: list[Any], chosen: Any, named: bool
) -> tuple[Any, list[int], list[bool]]:
    """Rows [n, d] of the classes, how many each has, and whether the last is a name."""
    parts = []
    for column in chosen:
        texts = [found.texts[row] for row in support[column]]
        parts.append(vectors([*texts, *([found.names[column]] if named else [])]))
    return np.concatenate(parts), [len(part) for part in parts], [named] * len(parts)


def pile_of(
    found: KindSet, examples: list[Any], support: list[Any], kind: str, per: int, number: int
) -> tuple[list[int], list[int]]:
    """Rows of the texts of a pile, and their classes."""
    rows: list[int] = []
    owners: list[int] = []
    for column, pool in enumerate(examples):
        rest = generator(found.name, "votes pile", number, column).permutation(np.setdiff1d(pool, support[column]))
        size = {"uneven": max(1, (per, per // 4, per // 16)[column % 3]), "few": per * (column % 5 == 0)}.get(kind, per)
        rows += rest[:size].tolist()
        owners += [column] * len(rest[:size])
    return rows, owners


def task_of(
    found: KindSet, vectors: Vectors, head: Head, chosen: Any, rows: list[int], owners: list[int], queries: list[Any]
) -> Task:
    """The task of some classes with this pile; new texts are the development queries."""
    place = {int(column): at for at, column in enumerate(chosen)}
    known = np.array([at for at, owner in enumerate(owners) if owner in place])
    asked = np.concatenate([queries[column] for column in chosen])
    asked = generator(found.name, "votes new").permutation(asked)[:MOST_NEW]
    return Task(
        head, vectors([found.texts[row] for row in rows]), known, np.array([place[owners[at]] for at in known]),
        vectors([found.texts[row] for row in asked]), np.array([place[int(found.labels[row])] for row in asked]),
    )  # fmt: skip


def variants(task: Task) -> dict[str, tuple[float, float]]:
    """Accuracies on the pile and on new texts, with parts left out; the graph answers its own texts only."""
    head = task.head
    adapted = learn_unlabelled(head, task.pile)
    with patch.object(learning, "EVENING", 0.0):
        uneven = learn_unlabelled(head, task.pile)
    with patch.object(learning, "between", lambda *_: 1.0):  # of agreement and coverage
        always = learn_unlabelled(head, task.pile)
    owner = np.repeat(np.arange(len(head.sizes)), head.sizes)
    rows, texts = np.asarray(head.rows), np.asarray(head.view(task.pile))
    spread = soft_labels(rows, one_hot(owner, len(head.sizes), rows), texts, softmax(np.asarray(head.scores(texts))))
    return {
        "plain": task.gains(head), "learned": task.gains(replace(adapted, voters=None)),
        "uneven votes": task.gains(uneven), "always": task.gains(always), "adapted": task.gains(adapted),
        "graph": (right(spread[task.known], task.pile_labels), float("nan")),
    }  # fmt: skip


def run(names: list[str]) -> None:
    """Measure all variants on the development tasks of these sets."""
    vectors = vectors_of("bge-small")
    restart("votes", names)
    for name in names:
        for key, task in tasks(KindSet(name), vectors, spread_without(vectors, name)):
            write("votes", key | {"accuracy": variants(task)})
        print(name, flush=True)


def votes_table() -> str:
    """Change against the head without unlabelled texts, by set and by pile: texts of the pile / new texts."""
    lines = lines_of("votes")
    by_set = [[name, *changes(group)] for (name,), group in grouped(lines, ("set",)).items()]
    by_pile = [
        [f"pile: {kind}, {per}", *changes(group)] for (kind, per), group in grouped(lines, ("pile", "per")).items()
    ]
    return markdown(["", *TITLES.values()], [*by_set, *by_pile, ["mean of all tasks", *changes(lines)]])


def changes(lines: list[Line]) -> list[str]:
    """Mean change of each variant."""
    return [
        pair(np.mean([np.subtract(line["accuracy"][key], line["accuracy"]["plain"]) for line in lines], axis=0))
        for key in TITLES
    ]


def pair(change: Any) -> str:
    """Texts of the pile / new texts."""
    pile, new = change
    return f"{pile:+.2f}" + ("" if np.isnan(new) else f" / {new:+.2f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "run":
        run(sys.argv[2:] or list(SETS))
    else:
        put_table(PAGE, "votes", votes_table())

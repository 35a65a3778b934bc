"""A trial on development tasks (texts of the pool only), which changed nothing in the default: see KINDS.md.

    python -m reproduce.kinds_trials memory     a memory of base classes of other kinds, read for the mean and the spread
    python -m reproduce.kinds_trials table      its table of KINDS.md

What a set's row is measured with never saw the set: memory, general spread and the constants that are chosen.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmin.adaptive import Head, Recipe, Spread, View, fit_head
from dmin.adaptive.fit import class_slices
from dmin.adaptive.logistic import fit_logistic, one_hot, primal_of
from dmin.adaptive.spread import Side, band_means
from dmin.adaptive.unlabelled import softmax
from reproduce.kinds import vectors_of
from reproduce.kinds_constants import spread_without
from reproduce.kinds_data import SETS, KindSet, generator, parts_of
from reproduce.kinds_lines import PAGE, grouped, lines_of, markdown, put_table, restart, write
from reproduce.kinds_unlabelled import unit

SIZES, DRAWS, QUERIES = (5, 20, 50), 3, 400
WORTH = (0, 3, 10, 30)  # how many examples the memory's estimate is worth
SHARPNESS = 20.0  # of the attention of examples to base classes


@dataclass(frozen=True)
class Task:
    """Vectors of a development task."""

    rows: Any  # [C, K, d], the name last where there is one
    named: bool
    asked: Any  # [L, d]
    labels: Any  # [L]

    @property
    def shape(self) -> tuple[list[int], list[bool]]:
        """Rows of each class, and whether the last is a name."""
        return [self.rows.shape[1]] * len(self.rows), [self.named] * len(self.rows)

    def accuracy(self, head: Head) -> float:
        """Accuracy of a head in %."""
        return 100 * float((np.asarray(head.scores(head.view(self.asked))).argmax(axis=1) == self.labels).mean())


def draw(found: KindSet, vectors: Any, size: int, shot: int, number: int, named: bool) -> Task:
    """A task of some classes from the pool."""
    queries, examples = found.development()
    random = generator(found.name, "trial", size, shot, number)
    chosen = random.permutation(len(found.classes))[:size]
    support = np.stack([random.permutation(examples[column])[:shot] for column in chosen])
    asked = random.permutation(np.concatenate([queries[column] for column in chosen]))[:QUERIES]
    place = {int(column): at for at, column in enumerate(chosen)}
    rows = vectors(found.texts)[support]  # [C, K, d]
    if named:
        rows = np.concatenate([rows, vectors([found.names[column] for column in chosen])[:, None]], axis=1)
    labels = np.array([place[int(found.labels[row])] for row in asked])
    return Task(rows, named, vectors([found.texts[row] for row in asked]), labels)


# Memory of base classes


@dataclass(frozen=True)
class Memory:
    """Base classes of other kinds: their means, and of each kind the mean and the spread in the general directions."""

    classes: Any  # [B, d], of norm 1
    owner: Any  # the kind of each [B]
    means: Any  # [kinds, d]
    spreads: Any  # variance around the kind's mean in each direction [kinds, d]

    @classmethod
    def of(cls, vectors: Any, names: list[str], spread: Spread) -> Memory:
        """From the pool texts of some sets."""
        classes, owner, means, spreads = [], [], [], []
        for at, name in enumerate(names):
            found = KindSet(name)
            every = unit(vectors(found.texts))
            own = np.stack([every[pool].mean(axis=0) for pool in found.pool])  # [C, d]
            means.append(own.mean(axis=0))
            inside = ((every - means[-1]) @ spread.directions) ** 2
            spreads.append(np.mean([inside[pool].mean(axis=0) for pool in found.pool], axis=0))
            classes.append(own)
            owner += [at] * len(own)
        return cls(unit(np.concatenate(classes)), np.array(owner), np.stack(means), np.stack(spreads))

    def read(self, rows: Any) -> tuple[Any, Any]:
        """(mean [d], spread [d]) of the kind at hand: kinds weighted by how examples [n, d] attend to their classes."""
        attention = softmax(SHARPNESS * unit(rows) @ self.classes.T).mean(axis=0)  # [B]
        weight = np.bincount(self.owner, attention, minlength=len(self.means))  # [kinds]
        return weight @ self.means, weight @ self.spreads


def with_memory(recipe: Recipe, spread: Spread, task: Task, memory: Memory, worth: tuple[float, float]) -> Head:
    """The head whose centre and spread are blended with what the memory says.

    Args:
        recipe: the constants.
        spread: the general spread.
        task: its examples.
        memory: of other kinds.
        worth: how many examples the memory's mean, and its spread, are worth beside the examples.
    """
    width, named = task.rows.shape[-1], task.named
    flat = task.rows.reshape(-1, width)
    head = fit_head(recipe, [spread], flat, *task.shape)
    examples = unit((task.rows[:, :-1] if named else task.rows).reshape(-1, width))
    mean, spread_read = memory.read(examples)
    count, side = len(examples), head.view.sides[0]
    centre = (count * np.asarray(side.centre) + worth[0] * mean) / (count + worth[0])
    own = (((examples - centre) @ spread.directions) ** 2).mean(axis=0)
    own = (count * own / own.sum() + worth[1] * spread_read / spread_read.sum()) / (count + worth[1])
    ratio = band_means(own) / (band_means(spread.values) / spread.values.sum())
    floored = (1 - recipe.floor) * spread.values + recipe.floor
    gain = np.sqrt(floored**-recipe.damping * ratio**recipe.matching).astype(np.float32)
    view = View((Side(side.directions, centre.astype(np.float32), side.name_centre, gain),))
    parts = [head_rows(view, flat[part], named) for part in class_slices(task.shape[0])]
    rows = np.concatenate(parts)
    target = one_hot(np.repeat(np.arange(len(task.rows)), task.rows.shape[1]), len(task.rows), rows)
    dual = fit_logistic(rows, target, np.asarray(head.weights), recipe.regularisation)
    return replace(head, view=view, rows=rows, dual=dual, primal=primal_of(dual, rows))


def head_rows(view: View, vectors: Any, named: bool) -> Any:
    """Rows of one class."""
    return np.concatenate([view(vectors[:-1]), view(vectors[-1:], names=True)]) if named else view(vectors)


def memory() -> None:
    """Accuracy of each pair of worths on development tasks of all sets."""
    vectors, recipe = vectors_of("bge-small"), Recipe()
    pairs = [(worth, 0) for worth in WORTH] + [(0, worth) for worth in WORTH[1:]] + [(w, w) for w in WORTH[1:]]
    restart("memory", SETS)
    for name in SETS:
        found, spread = KindSet(name), spread_without(vectors, name)
        kept = Memory.of(vectors, [other for other in SETS if other not in parts_of(name)], spread)
        for size in sorted({min(size, len(found.classes)) for size in SIZES}):
            for shot in (1, 2):
                for number in range(DRAWS):
                    for named in (False, True):
                        task = draw(found, vectors, size, shot, number, named)
                        plain = task.accuracy(fit_head(recipe, [spread], task.rows.reshape(-1, 384), *task.shape))
                        values = [task.accuracy(with_memory(recipe, spread, task, kept, pair)) for pair in pairs]
                        key = {"set": name, "classes": size, "shot": shot, "draw": number, "names": named}
                        write("memory", key | {"plain": plain, "pairs": pairs, "accuracy": values})
        print(name, flush=True)


def memory_table() -> str:
    """The change by the pair that the other sets chose, and by the best pair of the set itself."""
    lines = lines_of("memory")
    pairs = [tuple(pair) for pair in lines[0]["pairs"]]
    change = {
        name: {
            key: np.mean([np.subtract(line["accuracy"], line["plain"]) for line in group], axis=0)
            for key, group in grouped([line for line in lines if line["set"] == name], ("shot", "names")).items()
        }
        for name in SETS
    }  # fmt: skip
    rows = []
    for name in SETS:
        others = [other for other in SETS if other not in parts_of(name)]
        for key, own in change[name].items():
            chosen = int(np.mean([change[other][key] for other in others], axis=0).argmax())
            best = int(own.argmax())
            rows.append([name, str(key[0]), "yes" if key[1] else "no", f"{pairs[chosen][0]} / {pairs[chosen][1]}",
                         f"{own[chosen]:+.2f}", f"{pairs[best][0]} / {pairs[best][1]}", f"{own[best]:+.2f}"])  # fmt: skip
    header = [
        "set",
        "per class",
        "names",
        "mean / spread worth, chosen on the others",
        "change",
        "best of the set",
        "change",
    ]
    total = np.mean([float(row[4]) for row in rows])
    return markdown(header, rows) + f"\n\nMean change with the choice of the other sets: {total:+.2f} points"


def table() -> None:
    """Put the table into KINDS.md."""
    if lines_of("memory"):
        put_table(PAGE, "memory", memory_table())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"memory": memory, "table": table}[sys.argv[1]]()

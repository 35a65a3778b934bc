"""The fitted adaptive head: rows of all classes, the dual weights of the logistic part, and the scores they give.

The deciding score of a class is its logit plus a weighted cosine: with probabilities in mind, a sum of two logarithms of
probabilities (their normalisers are the same for all classes). The cosine is that of the query with a class vector made
for it, a softmax over the class's rows. Unlabelled texts, where there were any, vote on top of it (`voters.py`). A head
never changes; a change of one class gives a new one in which the centre, the gains and the weights of all other classes
are the same objects or equal copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from dmin.adaptive.logistic import fit_column, one_hot, primal_of
from dmin.adaptive.namespace import array_namespace, device
from dmin.adaptive.products import class_products, example_products
from dmin.adaptive.room import Room
from dmin.adaptive.spread import Array, Recipe, View
from dmin.adaptive.voters import Voters

SIZES = (1, 2, 3, 4, 5, 6, 8, 11, 16, 24, 32, 48, 64, 96, 128, 192, 256)  # numbers of rows that classes are padded to
# Products have fixed shapes, filled up with zeros: how one is rounded depends on its shape, and a class that comes or goes
# must not move the others' scores, not even by rounding.
BLOCK_ROWS, BLOCK_QUERIES = 256, 128
NOWHERE = -1e30  # logarithm of what a padded row counts


@dataclass(frozen=True, eq=False)
class Block:
    """Some classes of like size, whose cosines are computed together."""

    columns: tuple[int, ...]
    rows: Array  # [B·K, D]
    counts: Array  # logarithm of what each row counts [B, K, 1]
    gram: Array  # [B, K, K]


@dataclass(frozen=True, eq=False)
class Head:
    """Rows and weights of all classes.

    Args:
        recipe: the constants.
        view: from an encoder's vectors to rows.
        typical: examples per class at the fit (lower quartile, at least 1).
        name_weight: how many examples a name is worth.
        sharpness: of the softmax over a class's rows.
        rows: X [n, D], of norm 1: the classes in order, each with its examples and then its name.
        sizes: rows of each class.
        named: is the last row of each class its name?
        dual: A [n, C]; None where the logistic part is left out.
        primal: W [C, D]: A'X as it was when each column was fitted, with the parts of rows that have left since then, and
            of unlabelled texts.
        room: where rows of further classes find place without a copy of all the others; numpy only.
        voters: unlabelled texts that vote, where some were learned from.
    """

    recipe: Recipe
    view: View
    typical: float
    name_weight: float
    sharpness: float
    rows: Array
    sizes: tuple[int, ...]
    named: tuple[bool, ...]
    dual: Array | None = None
    primal: Array | None = None
    room: Room | None = None
    voters: Voters | None = None

    # Rows

    @cached_property
    def starts(self) -> list[int]:
        """The first row of each class, and the end of the last."""
        return [0, *accumulate(self.sizes)]

    @cached_property
    def start_array(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """`starts` as an array [C + 1]."""
        return np.concatenate([[0], np.cumsum(self.size_array)]).astype(np.int64)

    @cached_property
    def size_array(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """`sizes` as an array [C]."""
        return np.array(self.sizes, dtype=np.int64)

    @cached_property
    def named_array(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """`named` as an array [C]."""
        return np.array(self.named, dtype=bool)

    def rows_of(self, column: int) -> slice:
        """The rows of a class."""
        return slice(self.starts[column], self.starts[column + 1])

    @cached_property
    def _counts(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        """What each row counts in its class's vector: a class of many examples gives only as many as is typical."""
        return np.concatenate([
            row_values(size, named, (np.arange(size) < self.typical).astype(np.float32), self.name_weight)
            for size, named in zip(self.sizes, self.named, strict=True)
        ]) if self.sizes else np.empty(0, np.float32)  # fmt: skip

    @cached_property
    def weights(self) -> Array:
        """What each row of a class counts in the logistic loss, [rows of classes]."""
        xp = array_namespace(self.rows)
        parts = []
        for size, named in zip(self.sizes, self.named, strict=True):
            examples = max(1, size - named)
            weight = min(1.0, self.typical / examples) ** self.recipe.balance
            parts.append(row_values(size, named, np.full(size, weight, np.float32), self.name_weight))
        return xp.asarray(np.concatenate(parts), device=device(self.rows))

    # Scores

    @cached_property
    def _blocks(self) -> list[Block]:
        """Classes by size, a fixed number in each block."""
        groups: dict[int, list[int]] = {}
        used = [np.flatnonzero(self._counts[self.rows_of(column)] > 0) for column in range(len(self.sizes))]
        for column, places in enumerate(used):
            size = next((size for size in SIZES if size >= len(places)), len(places))
            groups.setdefault(size, []).append(column)
        blocks = []
        for size, columns in sorted(groups.items()):
            most = max(1, BLOCK_ROWS // size)
            blocks += [self._block(columns[at : at + most], used, size, most) for at in range(0, len(columns), most)]
        return blocks

    def _block(self, columns: Sequence[int], used: Sequence[np.ndarray[Any, Any]], size: int, most: int) -> Block:
        xp, where = array_namespace(self.rows), device(self.rows)
        index, counts = np.zeros((most, size), np.int64), np.full((most, size), NOWHERE, np.float32)
        for place, column in enumerate(columns):
            rows = self.starts[column] + used[column]
            index[place, : len(rows)] = rows
            counts[place, : len(rows)] = np.log(self._counts[rows])
        rows = xp.take(self.rows, xp.asarray(index.ravel(), device=where), axis=0)  # [B·K, D]
        rows = rows * xp.asarray((counts.ravel() > NOWHERE).astype(np.float32)[:, None], device=where)
        cube = xp.reshape(rows, (most, size, rows.shape[1]))  # [B, K, D]
        return Block(
            tuple(columns), rows, xp.asarray(counts[:, :, None], device=where), cube @ xp.permute_dims(cube, (0, 2, 1))
        )

    def cosines(self, queries: Array) -> Array:
        """Cosine of each query, of norm 1 [L, D], with each class's vector: [L, C]. Refusal works on this."""
        xp = array_namespace(queries)
        parts = [self._cosines(queries[at : at + BLOCK_QUERIES]) for at in range(0, queries.shape[0], BLOCK_QUERIES)]
        return xp.concat(parts, axis=0) if parts else xp.zeros((0, len(self.sizes)), dtype=queries.dtype)

    def _cosines(self, queries: Array) -> Array:
        xp = array_namespace(queries)
        found: list[Array] = []
        order: list[int] = []
        for block in self._blocks:
            found.append(xp.sum(self._block_shares(block, queries), axis=1)[: len(block.columns), :])  # [B, L]
            order += block.columns
        places = xp.asarray(np.argsort(order), device=device(queries))
        return xp.permute_dims(xp.take(xp.concat(found, axis=0), places, axis=0), (1, 0))

    def _block_shares(self, block: Block, queries: Array) -> Array:
        """Each row's part in the cosine of its class, [B, K, L]."""
        xp = array_namespace(queries)
        size = block.gram.shape[1]
        near = example_products(queries, block.rows, size)  # [B, K, L]
        logits = self.sharpness * near + block.counts
        exponent = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
        weights = exponent / xp.sum(exponent, axis=1, keepdims=True)  # [B, K, L]
        squared = xp.sum((block.gram @ weights) * weights, axis=1, keepdims=True)  # [B, 1, L]
        return weights * near / xp.sqrt(xp.where(squared > 1e-12, squared, xp.ones_like(squared)))

    def logits(self, queries: Array) -> Array | None:
        """The logistic part [L, C]; None where it is left out."""
        return None if self.primal is None else class_products(queries, self.primal)

    def scores(self, queries: Array, cosines: Array | None = None) -> Array:
        """The deciding scores [L, C] of queries of norm 1 [L, D]; `cosines`, if they are known already."""
        found = self.recipe.cosine_weight * (self.cosines(queries) if cosines is None else cosines)
        logits = self.logits(queries)
        found = found if logits is None else found + logits
        return found if self.voters is None else self.voters.added(found, queries)

    # Explanations

    def shares(self, query: Array, column: int) -> tuple[np.ndarray[Any, np.dtype[np.float64]], float]:
        """What each row [n] adds to a class's deciding score of one query [D], and what else does; they add up to it.

        What else: rows that have left since the class was fitted, and unlabelled texts.
        """
        rows, asked = (np.asarray(part, dtype=np.float64) for part in (self.rows, query))
        near = rows @ asked  # [n]
        found, rest = np.zeros_like(near), 0.0
        if self.dual is not None and self.primal is not None:
            found = np.asarray(self.dual[:, column], dtype=np.float64) * near
            rest = float(np.asarray(self.primal[column, :], dtype=np.float64) @ asked - found.sum())
        own = self.rows_of(column)
        found[own] += self.recipe.cosine_weight * self._vector_shares(rows[own], near[own], self._counts[own])
        vote, scale = self._vote(query, column)
        return scale * found, scale * (rest + vote)

    def without(self, query: Array, column: int, row: int) -> tuple[float, float]:
        """(cosine, deciding score) of a class for one query [D] if one of its rows were not there."""
        own = self.rows_of(column)
        kept = [place for place in range(self.sizes[column]) if place != row]
        smaller = replace(
            self, rows=self.rows[own, :][kept, :], sizes=(len(kept),), dual=None, primal=None,
            named=(self.named[column] and row != self.sizes[column] - 1,),
        )  # fmt: skip
        vectors = np.asarray(smaller.rows, dtype=np.float64)
        near = vectors @ np.asarray(query, dtype=np.float64)
        cosine = float(np.sum(self._vector_shares(vectors, near, smaller._counts)))
        logit = 0.0
        if self.dual is not None and self.primal is not None:
            place = own.start + row
            own_part = float(self.dual[place, column]) * float(np.asarray(self.rows[place, :]) @ np.asarray(query))
            logit = float(np.asarray(self.primal[column, :]) @ np.asarray(query)) - own_part
        vote, scale = self._vote(query, column)
        return cosine, scale * (self.recipe.cosine_weight * cosine + logit + vote)

    def _vote(self, query: Array, column: int) -> tuple[float, float]:
        """What unlabelled texts add to a class's score of one query [D], and the scale of the sum."""
        if self.voters is None:
            return 0.0, 1.0
        votes, scale = self.voters(query[None, :])
        return float(votes[0, column]), float(scale[0, 0])

    def _vector_shares(self, rows: Any, near: Any, counts: Any) -> Any:
        """Each row's part [K] in the cosine of one class with rows [K, D] and likenesses [K]."""
        with np.errstate(divide="ignore"):
            logits = self.sharpness * near + np.log(counts)
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
        norm = np.linalg.norm(weights @ rows)
        return weights * near / (norm if norm > 1e-6 else 1.0)

    # Changes

    def with_class(self, vectors: Array, named: bool) -> Head:
        """With one class more, from an encoder's vectors [K, D], the name last; no other score moves."""
        if self.dual is None and self.room is not None:
            rows = self.room.appended(np.asarray(self.rows), self.prepare(vectors, named))
            return replace(self, rows=rows, sizes=(*self.sizes, vectors.shape[0]), named=(*self.named, named))
        return self._changed(len(self.sizes), self.prepare(vectors, named), named, [-1] * vectors.shape[0])

    def with_rows(self, column: int, vectors: Array, named: bool, before: Sequence[int]) -> Head:
        """With other rows of one class; no other score moves.

        Args:
            column: the class.
            vectors: of all its rows now [K, D].
            named: is the last one its name?
            before: for each row, which one of the class it was before; -1 for a new one.
        """
        return self._changed(column, self.prepare(vectors, named), named, before)

    def without_class(self, column: int) -> Head:
        """With one class less; no other score moves."""
        keep = [place for place in range(len(self.sizes)) if place != column]
        own = self.rows_of(column)
        rows = [*range(own.start), *range(own.stop, self.rows.shape[0])]
        return replace(
            self,
            rows=self.rows[rows, :],
            room=None,
            sizes=tuple(self.sizes[place] for place in keep),
            named=tuple(self.named[place] for place in keep),
            dual=None if self.dual is None else self.dual[rows, :][:, keep],
            primal=None if self.primal is None else self.primal[keep, :],
            voters=None if self.voters is None else self.voters.without_class(column),
        )

    def with_room(self) -> Head:
        """The same head, to which classes can be added without a copy of all rows; only without the logistic part."""
        if self.dual is not None or not isinstance(self.rows, np.ndarray) or len(self.rows) != sum(self.sizes):
            return self
        room = Room()
        rows = np.asarray(self.rows)
        return replace(self, rows=room.appended(rows, rows[:0]), room=room)

    def prepare(self, vectors: Array, named: bool) -> Array:
        """Rows [K, D] of one class's vectors."""
        xp, last = array_namespace(vectors), vectors.shape[0] - int(named)
        parts = [self.view(vectors[:last, :])] if last else []
        return xp.concat([*parts, *([self.view(vectors[last:, :], names=True)] if named else [])], axis=0)

    def _changed(self, column: int, rows: Array, named: bool, before: Sequence[int]) -> Head:
        """The class of a column replaced, or added at the end."""
        xp, where = array_namespace(rows), device(rows)
        new = column == len(self.sizes)
        first, last = self.starts[column], self.starts[column] if new else self.starts[column + 1]
        index = np.array(
            [*range(first), *(first + at if at >= 0 else -1 for at in before), *range(last, self.starts[-1])]
        )
        fresh = xp.asarray(index[:, None] < 0, device=where)  # [n, 1]
        kept = xp.asarray(np.maximum(index, 0), device=where)
        given = xp.concat([self.rows[:first, :], rows, self.rows[last:, :]], axis=0)
        sizes = (*self.sizes[:column], len(before), *self.sizes[column + 1 :])
        names = (*self.named[:column], named, *self.named[column + 1 :])
        all_rows = xp.where(fresh, given, xp.take(self.rows, kept, axis=0))  # what was known stays to the last bit
        head = replace(self, rows=all_rows, sizes=sizes, named=names, dual=None, primal=None, room=None)
        if self.dual is None or self.primal is None:
            return head
        dual = xp.where(fresh, xp.zeros_like(self.dual[:1, :]), xp.take(self.dual, kept, axis=0))  # [n, C]
        if new or -1 in before:
            own = head._new_column(column, self.primal)  # [n]
            vector = primal_of(own[:, None], all_rows)  # [1, D]
        else:  # rows have left: their terms of this class's logit leave with them
            gone = [place for place in range(first, last) if place - first not in before]
            own = dual[:, column]
            vector = self.primal[column, :][None, :] - primal_of(self.dual[gone, :][:, [column]], self.rows[gone, :])
        duals = [dual[:, :column], own[:, None], dual[:, column + 1 :]]
        primals = [self.primal[:column, :], vector, self.primal[column + 1 :, :]]
        changed = replace(head, dual=xp.concat(duals, axis=1), primal=xp.concat(primals, axis=0))
        return changed if self.voters is None else replace(changed, voters=changed._voters_for(column, rows, new))

    def _voters_for(self, column: int, rows: Array, new: bool) -> Voters | None:
        """The voters after a class was added, or got other rows [K, D]."""
        if self.voters is None or self.primal is None or not new:
            return self.voters and self.voters.with_examples(column, rows)
        own = {"sizes": self.sizes[column:], "named": self.named[column:], "primal": self.primal[column:, :]}
        alone = replace(self, rows=rows, dual=None, voters=None, **own)
        return self.voters.with_class(alone.scores(self.voters.rows)[:, 0], rows)

    def _new_column(self, column: int, primal: Array) -> Array:
        """Dual weights [n] of a class, those of all others frozen as `primal` has them."""
        xp = array_namespace(self.rows)
        others = [place for place in range(primal.shape[0]) if place != column]
        frozen = self.rows @ primal[others, :].T  # [n, C - 1]
        top = xp.max(frozen, axis=1, keepdims=True)
        known = top[:, 0] + xp.log(xp.sum(xp.exp(frozen - top), axis=1))
        owner = np.repeat(np.arange(len(self.sizes)), self.sizes)
        own_column = np.where(owner == column, 0, owner - (owner > column))  # among the others
        own = xp.sum(frozen * one_hot(own_column, len(others), frozen), axis=1)
        is_new = xp.asarray(owner == column, device=device(self.rows))
        return fit_column(self.rows, is_new, known, own, self.weights, self.recipe.regularisation)


def row_values(size: int, named: bool, values: Any, of_name: float) -> Any:
    """Values [K] of a class's rows, the last one another where it is the name."""
    if named:
        values[size - 1] = of_name
    return values

"""An approximate index of class vectors, for many thousands of classes: it finds candidates, the head scores those exactly.

faiss's HNSW graph over one vector per class, the mean of its rows. Entries are added, never removed: each head has its own
table from entries to columns, in which those of removed or changed classes lead nowhere. So heads that follow each other
share one graph, and a class is added in about a millisecond.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmin.adaptive.head import NOWHERE, Head
from dmin.errors import ConfigError

CANDIDATES = 32  # classes of a text that are scored exactly
LINKS, BUILD_EFFORT, SEARCH_EFFORT = 24, 64, 64  # of the graph: per class, while it is built, while it is searched
STALE = 0.5  # part of entries that lead nowhere from which on the graph is built anew
_BLOCK = 64  # texts whose candidates are scored together

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ClassIndex:
    """The graph, and which column each of its entries stands for; -1 for none."""

    graph: Any
    columns: NDArray[np.int64]  # [entries]
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def build(cls, head: Head) -> ClassIndex:
        """Of all classes of a head."""
        faiss = import_faiss()
        graph = faiss.IndexHNSWFlat(int(head.rows.shape[1]), LINKS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction, graph.hnsw.efSearch = BUILD_EFFORT, SEARCH_EFFORT
        graph.add(class_means(head))
        return cls(graph, np.arange(len(head.sizes)))

    def changed(self, head: Head, column: int) -> ClassIndex:
        """For a head in which the class of a column is new or has other rows."""
        columns = np.where(self.columns == column, -1, self.columns)
        own = slice(int(head.start_array[column]), int(head.start_array[column + 1]))
        small = replace(
            head, rows=np.asarray(head.rows)[own], sizes=(head.sizes[column],), named=(head.named[column],), dual=None,
            primal=None, room=None,
        )  # fmt: skip
        with self.lock:
            missing = len(columns)
            if missing != self.graph.ntotal:  # another head went on from the same one
                columns = np.concatenate([columns, np.full(self.graph.ntotal - missing, -1)])
            self.graph.add(class_means(small))
        return self._fresh(replace(self, columns=np.append(columns, column)), head)

    def without(self, head: Head, column: int) -> ClassIndex:
        """For a head without the class that had this column."""
        columns = np.where(self.columns == column, -1, self.columns - (self.columns > column))
        return self._fresh(replace(self, columns=columns), head)

    @staticmethod
    def _fresh(found: ClassIndex, head: Head) -> ClassIndex:
        stale = float((found.columns < 0).mean()) if len(found.columns) else 0.0
        return ClassIndex.build(head) if stale > STALE else found

    def candidates(self, queries: FloatArray) -> NDArray[np.int64]:
        """Columns of the nearest classes of rows [L, D] of norm 1: [L, k]; -1 where there are fewer."""
        wanted = min(2 * CANDIDATES, self.graph.ntotal)  # (some lead nowhere)
        with self.lock:
            _, entries = self.graph.search(np.ascontiguousarray(queries, np.float32), wanted)
        known = (entries >= 0) & (entries < len(self.columns))
        columns = np.where(known, self.columns[np.where(known, entries, 0)], -1)  # [L, wanted]
        order = np.argsort(columns < 0, axis=1, kind="stable")[:, :CANDIDATES]  # those that lead nowhere go last
        return np.take_along_axis(columns, order, axis=1)

    # Storage

    def packed(self) -> dict[str, NDArray[Any]]:
        """Graph and table as arrays."""
        with self.lock:
            graph = np.array(import_faiss().serialize_index(self.graph))
        return {"graph": graph, "columns": self.columns}

    @classmethod
    def unpacked(cls, arrays: Any, head: Head) -> ClassIndex:
        """What `packed` gave; built anew where it does not fit the head."""
        faiss = import_faiss()
        columns = np.asarray(arrays["columns"])
        here = np.sort(columns[columns >= 0])
        if not np.array_equal(here, np.arange(len(head.sizes))):
            return cls.build(head)
        graph = faiss.downcast_index(faiss.deserialize_index(np.ascontiguousarray(arrays["graph"])))
        return cls(graph, columns) if graph.d == head.rows.shape[1] else cls.build(head)


def candidate_scores(head: Head, queries: FloatArray, columns: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """(cosines, deciding scores) of rows [L, D] with columns [L, k], the same as `Head.scores`; -inf for column -1."""
    parts = [
        _scores(head, queries[at : at + _BLOCK], columns[at : at + _BLOCK]) for at in range(0, len(queries), _BLOCK)
    ]
    cosines, scores = zip(*parts, strict=True)
    return np.concatenate(cosines), np.concatenate(scores)


def _scores(head: Head, queries: FloatArray, columns: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    known, places = columns >= 0, np.maximum(columns, 0)  # [L, k]
    sizes, named = head.size_array[places], head.named_array[places]
    row = np.arange(sizes.max())  # [K]
    counts = np.where(row < head.typical, 1.0, 0.0) * (row < sizes[..., None])  # [L, k, K]
    counts = np.where(named[..., None] & (row == sizes[..., None] - 1), head.name_weight, counts)
    index = np.minimum(head.start_array[places][..., None] + row, len(head.rows) - 1)
    rows = np.asarray(head.rows)[index]  # [L, k, K, D]
    near = np.einsum("lkrd,ld->lkr", rows, queries)  # [L, k, K]
    with np.errstate(divide="ignore"):
        logits = np.maximum(head.sharpness * near + np.log(counts), NOWHERE)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    vectors = np.einsum("lkr,lkrd->lkd", weights.astype(np.float32), rows)  # [L, k, D]
    norm = np.linalg.norm(vectors, axis=-1)
    cosines = np.sum(weights * near, axis=-1) / np.where(norm > 1e-6, norm, 1.0)
    scores = head.recipe.cosine_weight * cosines
    if head.primal is not None:
        scores = scores + np.einsum("lkd,ld->lk", np.asarray(head.primal)[places], queries)
    if head.voters is not None:
        votes, scale = (np.asarray(part) for part in head.voters(queries))
        scores = scale * (scores + np.take_along_axis(votes, places, axis=1))
    lowest = np.float32(-np.inf)
    return np.where(known, cosines, lowest).astype(np.float32), np.where(known, scores, lowest).astype(np.float32)


def class_means(head: Head) -> FloatArray:
    """The mean of each class's rows, as they count in its vector, of norm 1 [C, D]."""
    end, sizes = int(head.start_array[-1]), head.size_array
    place = np.arange(end) - np.repeat(head.start_array[:-1], sizes)  # of each row in its class [n]
    counts = (place < head.typical).astype(np.float32)
    counts[(head.start_array[1:] - 1)[head.named_array]] = head.name_weight
    return _unit(np.add.reduceat(np.asarray(head.rows)[:end] * counts[:, None], head.start_array[:-1], axis=0))


def _unit(vectors: FloatArray) -> FloatArray:
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(norm > 0, norm, 1), np.float32)


def import_faiss() -> Any:
    """faiss, or a `ConfigError` that says how to install it."""
    try:
        import faiss
    except ImportError as error:
        raise ConfigError("search='index' needs faiss: pip install 'dmin[index]'") from error
    return faiss

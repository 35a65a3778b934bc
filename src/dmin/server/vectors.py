"""Vectors of texts, kept in memory and beside the examples in the store: an example is encoded once."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from dmin.errors import one_line
from dmin.server.database import Database
from dmin.server.draft import text_digest
from dmin.server.tables import vectors

_log = logging.getLogger("dmin.server")
_CHUNK = 500  # rows of one statement


class VectorMemory:
    """An encoder's `encode` that looks up what it has seen.

    Args:
        encode: the encoder's own `encode`.
        key: names everything that decides a vector; the store keeps vectors under it.
        most: vectors kept in memory; the least recently used go.
    """

    def __init__(self, encode: Callable[..., Any], key: str, most: int = 50_000) -> None:
        self._encode, self.key, self._most = encode, key, most
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()
        self.computed = 0  # texts that were really encoded

    def encode(self, texts: Sequence[str], **options: Any) -> Any:
        """Like the encoder's `encode`: float32 [n, d]; each text is computed once."""
        digests = [text_digest(text) for text in texts]
        known = self._look_up(digests)
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
        if missing or not digests:
            fresh = self._encode(list(missing.values()), **options)  # [m, d]
            if not digests:
                return fresh
            self.computed += len(missing)
            rows = dict(zip(missing, fresh, strict=True))
            self.put(rows)
            known |= rows
        return np.stack([known[digest] for digest in digests])  # [n, d]

    def _look_up(self, digests: Sequence[str]) -> dict[str, Any]:
        with self._lock:
            known = {digest: self._kept[digest] for digest in digests if digest in self._kept}
            for digest in known:
                self._kept.move_to_end(digest)
            return known

    def put(self, rows: dict[str, Any]) -> None:
        """Keep vectors."""
        with self._lock:
            self._kept.update(rows)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def load(self, database: Database, texts: Sequence[str]) -> None:
        """Read the vectors of texts from the store, as far as it has them."""
        digests = {text_digest(text) for text in texts}
        with self._lock:
            wanted = sorted(digests - self._kept.keys())
        found: dict[str, Any] = {}
        with database.reading() as connection:
            for at in range(0, len(wanted), _CHUNK):
                part = vectors.c.digest.in_(wanted[at : at + _CHUNK])
                query = select(vectors.c.digest, vectors.c.vector).where(vectors.c.encoder == self.key, part)
                found |= {row.digest: np.frombuffer(row.vector, "<f4") for row in connection.execute(query)}
        self.put(found)

    def save(self, database: Database, texts: Sequence[str]) -> None:
        """Write the vectors of texts that the store lacks. They are a cache: a failure is logged, not raised."""
        known = self._look_up([text_digest(text) for text in texts])
        kind = sqlite if database.is_sqlite else postgresql
        try:
            with database.reading() as connection:
                there: set[str] = set()
                for at in range(0, len(known), _CHUNK):
                    part = vectors.c.digest.in_(list(known)[at : at + _CHUNK])
                    query = select(vectors.c.digest).where(vectors.c.encoder == self.key, part)
                    there |= set(connection.execute(query).scalars())
            rows = [
                {"encoder": self.key, "digest": digest, "vector": np.asarray(vector, "<f4").tobytes()}
                for digest, vector in known.items()
                if digest not in there
            ]
            if rows:
                with database.writing() as connection:
                    connection.execute(kind.insert(vectors).on_conflict_do_nothing(), rows)
        except SQLAlchemyError as error:
            _log.warning("vectors not stored: %s", one_line(str(error)))

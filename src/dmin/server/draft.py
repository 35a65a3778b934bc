"""A change of one collection in the making: every edit writes its rows and notes how to take it back.

A delta is what a change did, in both directions: `{"collection": [before, after], "classes": [[label, before, after]],
"examples": [[sign, label, text, position]]}`. `inverse` turns it round, `Draft.apply` carries it out; undo is both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from dmin.server.database import now
from dmin.server.problems import Problem
from dmin.server.settings import Limits
from dmin.server.tables import classes, collections, examples

Delta = dict[str, Any]


def text_digest(text: str) -> str:
    """Names a text in an index."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def inverse(delta: Delta) -> Delta:
    """The delta that takes this one back."""
    before, after = delta["collection"] or (None, None)
    return {
        "collection": [after, before] if delta["collection"] else None,
        "classes": [[label, after, before] for label, before, after in reversed(delta["classes"])],
        "examples": [
            ["-" if sign == "+" else "+", label, text, place]
            for sign, label, text, place in reversed(delta["examples"])
        ],
    }


class Draft:
    """One collection inside a transaction, and what was done to it so far.

    Args:
        connection: a transaction that may write.
        row: the collection's row, locked by whoever made the draft; None where it is not there.
        name: of the collection.
        who: who changes it.
        limits: how many classes and examples it may have.
    """

    def __init__(self, connection: Connection, row: Any, name: str, who: str, limits: Limits) -> None:
        self._connection, self._limits = connection, limits
        self.name, self.who = name, who
        self._id: int | None = row.id if row is not None else None
        self._position: int = row.position if row is not None else 0
        self._content = {"description": row.description, "settings": row.settings} if row is not None else None
        self.delta: Delta = {"collection": None, "classes": [], "examples": []}
        self._touched: set[str] = set()

    # The collection itself

    @property
    def exists(self) -> bool:
        """Is the collection there?"""
        return self._id is not None

    def create(self, description: str, settings: dict[str, Any]) -> None:
        """Make the collection."""
        self._set_collection({"description": description, "settings": settings})

    def describe(self, description: str | None, settings: dict[str, Any] | None) -> None:
        """Change description or settings; None leaves one as it is."""
        before = dict(self._content or {})
        after = {
            "description": before["description"] if description is None else description,
            "settings": before["settings"] if settings is None else settings,
        }
        if after != before:
            self._set_collection(after)

    def drop(self) -> None:
        """Remove the collection with all it has."""
        for label in self.labels():
            self.remove_class(label)
        self._set_collection(None)

    def _set_collection(self, after: dict[str, Any] | None) -> None:
        if after is None:
            self._connection.execute(delete(collections).where(collections.c.id == self._id))
            self._id = None
        elif self._id is None:
            values = {"name": self.name, "revision": 0, "position": self._position, "created_at": now(), **after}
            self._id = self._connection.execute(insert(collections).values(values)).inserted_primary_key[0]  # type: ignore[index]
        else:
            self._connection.execute(update(collections).where(collections.c.id == self._id).values(after))
        first = self.delta["collection"][0] if self.delta["collection"] else self._content
        self.delta["collection"] = [first, after]
        self._content = after

    # Classes

    def labels(self) -> list[str]:
        """The labels in order."""
        query = select(classes.c.label).where(classes.c.collection_id == self._id).order_by(classes.c.position)
        return list(self._connection.execute(query).scalars())

    def has_class(self, label: str) -> bool:
        """Is there such a class?"""
        return self._class(label) is not None

    def put_class(self, label: str, description: str | None) -> None:
        """Make a class, or change its description."""
        row = self._class(label)
        if row is None:
            self._check_room()
            self._set_class(label, None, {"description": description, "position": self._next()})
        elif row.description != description:
            place = {"position": row.position}
            self._set_class(label, {"description": row.description, **place}, {"description": description, **place})

    def remove_class(self, label: str) -> None:
        """Remove a class and its examples."""
        row = self._class(label)
        self.remove_examples(label)
        self._set_class(label, {"description": row.description, "position": row.position}, None)

    def rename_class(self, label: str, new: str) -> None:
        """Give a class another label, its place and its examples."""
        row = self._class(label)
        kept = [(item.text, item.position) for item in self.examples(label)]
        state = {"description": row.description, "position": row.position}
        self.remove_class(label)
        self._set_class(new, None, state)
        self._insert(new, kept)

    def _set_class(self, label: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        found = (classes.c.collection_id == self._id) & (classes.c.label == label)
        if after is None:
            self._connection.execute(delete(classes).where(found))
        elif before is None:
            values = {"collection_id": self._id, "label": label, "revision": 0, **after}
            self._connection.execute(insert(classes).values(values))
        else:
            self._connection.execute(update(classes).where(found).values(after))
        self.delta["classes"].append([label, before, after])
        self._touched.add(label)

    def _class(self, label: str) -> Any:
        query = select(classes).where(classes.c.collection_id == self._id, classes.c.label == label)
        return self._connection.execute(query).first()

    def _check_room(self) -> None:
        query = select(func.count()).select_from(classes).where(classes.c.collection_id == self._id)
        if self._connection.execute(query).scalar_one() >= self._limits.classes:
            raise Problem(422, "too-many-classes", f"A collection may have {self._limits.classes} classes.")

    # Examples

    def examples(self, label: str) -> Sequence[Any]:
        """The examples of a class in order."""
        query = select(examples).join(classes).where(classes.c.collection_id == self._id, classes.c.label == label)
        return self._connection.execute(query.order_by(examples.c.position)).all()

    def add_examples(self, label: str, texts: Iterable[str]) -> int:
        """Add examples to a class; texts that it has already stay as they are. Returns how many are new."""
        there = {item.digest for item in self.examples(label)}
        fresh = {text_digest(text): text for text in texts}
        fresh = {digest: text for digest, text in fresh.items() if digest not in there}
        if len(there) + len(fresh) > self._limits.examples:
            most = self._limits.examples
            raise Problem(
                422, "too-many-examples", f"A class may have {most} examples; this would be more.", label=label
            )
        self._insert(label, [(text, self._next()) for text in fresh.values()])
        return len(fresh)

    def remove_examples(self, label: str, keep: Iterable[str] = ()) -> int:
        """Remove the examples of a class but those to keep. Returns how many went."""
        kept = {text_digest(text) for text in keep}
        gone = [item for item in self.examples(label) if item.digest not in kept]
        for item in reversed(gone):
            self._remove_example(label, item.text)
        return len(gone)

    def remove_example(self, label: str, identifier: int) -> str:
        """Remove one example by its number; returns its text."""
        text = self.example_text(label, identifier)
        self._remove_example(label, text)
        return text

    def example_text(self, label: str, identifier: int) -> str:
        """The text of an example; a 404 problem where there is none."""
        for item in self.examples(label):
            if item.id == identifier:
                return str(item.text)
        raise Problem(404, "no-such-example", f"The class has no example with number {identifier}.")

    def _insert(self, label: str, rows: Sequence[tuple[str, int]]) -> None:
        """Write examples (text, position) of one class."""
        if not rows:
            return
        shared = {"class_id": self._class(label).id, "added_at": now(), "added_by": self.who}
        values = [{**shared, "text": text, "digest": text_digest(text), "position": place} for text, place in rows]
        self._connection.execute(insert(examples), values)
        self.delta["examples"] += [["+", label, text, place] for text, place in rows]
        self._touched.add(label)

    def _remove_example(self, label: str, text: str) -> None:
        owner = self._class(label).id
        found = (examples.c.class_id == owner) & (examples.c.digest == text_digest(text))
        place = self._connection.execute(select(examples.c.position).where(found)).scalar_one()
        self._connection.execute(delete(examples).where(found))
        self.delta["examples"].append(["-", label, text, place])
        self._touched.add(label)

    # Undo, and the end

    def apply(self, delta: Delta) -> None:
        """Carry out a delta: things appear from the outside in, and go from the inside out."""
        before, after = delta["collection"] or (None, None)
        if after is not None:
            self._set_collection(after)
        for sign, label, text, _ in delta["examples"]:
            if sign == "-":
                self._remove_example(label, text)
        for label, was, now_is in delta["classes"]:
            self._set_class(label, was, now_is)
        added: dict[str, list[tuple[str, int]]] = {}
        for sign, label, text, place in delta["examples"]:
            if sign == "+":
                added.setdefault(label, []).append((text, place))
        for label, rows in added.items():
            self._insert(label, rows)
        if before is not None and after is None:
            self._set_collection(None)

    def finish(self, revision: int) -> None:
        """Write the number of the change into what it touched."""
        if self._id is None:
            return
        values = {"revision": revision, "position": self._position}
        self._connection.execute(update(collections).where(collections.c.id == self._id).values(values))
        if self._touched:
            touched = (classes.c.collection_id == self._id) & classes.c.label.in_(self._touched)
            self._connection.execute(update(classes).where(touched).values(revision=revision))

    def _next(self) -> int:
        self._position += 1
        return self._position

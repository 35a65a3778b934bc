"""Reading the store: rows as the models of the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from dmin.server.problems import Problem
from dmin.server.schemas import (
    Change,
    ClassList,
    ClassSummary,
    Collection,
    CollectionSettings,
    Example,
    History,
    LabelledClass,
)  # fmt: skip
from dmin.server.tables import changes, classes, collections, examples

SERVICE = "dmin serve"  # who made the changes with which a service began


@dataclass(frozen=True)
class Content:
    """All that a classifier is fitted from, at one revision."""

    name: str
    revision: int
    settings: dict[str, Any]
    examples: dict[str, list[str]]
    descriptions: dict[str, str]


def no_such_collection(name: str, known: Sequence[str] = ()) -> Problem:
    """The 404 problem of a collection."""
    listed = f"There are: {', '.join(known[:10])}." if known else "GET /v1/collections lists them; PUT makes one."
    return Problem(404, "no-such-collection", f"There is no collection {name!r}. {listed}")


def no_such_class(label: str) -> Problem:
    """The 404 problem of a class."""
    return Problem(404, "no-such-class", f"The collection has no class {label!r}: GET .../classes lists them.")


def collection_row(connection: Connection, name: str, *, lock: bool = False) -> Any:
    """The row of a collection, or None; `lock` keeps other writers out until the transaction ends."""
    query = select(collections).where(collections.c.name == name)
    return connection.execute(query.with_for_update() if lock else query).first()


def existing(connection: Connection, name: str) -> Any:
    """The row of a collection, or its 404 problem."""
    row = collection_row(connection, name)
    if row is None:
        raise no_such_collection(name)
    return row


def revisions(connection: Connection) -> dict[str, int]:
    """The revision of every collection."""
    return {row.name: row.revision for row in connection.execute(select(collections.c.name, collections.c.revision))}


def all_collections(connection: Connection) -> list[Collection]:
    """Every collection with its sizes."""
    counts = (
        select(classes.c.collection_id, func.count(classes.c.id.distinct()), func.count(examples.c.id))
        .outerjoin(examples)
        .group_by(classes.c.collection_id)
    )
    sizes = {row[0]: (row[1], row[2]) for row in connection.execute(counts)}
    rows = connection.execute(select(collections).order_by(collections.c.name)).all()
    return [_collection(row, *sizes.get(row.id, (0, 0))) for row in rows]


def one_collection(connection: Connection, name: str) -> Collection:
    """One collection with its sizes."""
    row = existing(connection, name)
    query = (
        select(func.count(classes.c.id.distinct()), func.count(examples.c.id))
        .select_from(classes.outerjoin(examples))
        .where(classes.c.collection_id == row.id)
    )
    return _collection(row, *connection.execute(query).one())


def _collection(row: Any, class_count: int, example_count: int) -> Collection:
    return Collection(
        name=row.name, description=row.description, settings=CollectionSettings(**row.settings), revision=row.revision,
        classes=class_count, examples=example_count, created_at=row.created_at,
    )  # fmt: skip


def class_list(connection: Connection, name: str) -> ClassList:
    """The classes of a collection, without their examples."""
    row = existing(connection, name)
    query = (
        select(classes, func.count(examples.c.id).label("size"))
        .outerjoin(examples)
        .where(classes.c.collection_id == row.id)
        .group_by(*classes.c)
        .order_by(classes.c.position)
    )
    found = [
        ClassSummary(label=item.label, description=item.description, revision=item.revision, examples=item.size)
        for item in connection.execute(query)
    ]
    return ClassList(revision=row.revision, classes=found)


def one_class(connection: Connection, name: str, label: str) -> LabelledClass:
    """A class with its examples."""
    row = existing(connection, name)
    query = select(classes).where(classes.c.collection_id == row.id, classes.c.label == label)
    found = connection.execute(query).first()
    if found is None:
        raise no_such_class(label)
    items = connection.execute(
        select(examples).where(examples.c.class_id == found.id).order_by(examples.c.position)
    ).all()
    return LabelledClass(
        label=found.label, description=found.description, revision=found.revision,
        examples=[Example(id=i.id, text=i.text, added_at=i.added_at, added_by=i.added_by) for i in items],
    )  # fmt: skip


def class_revision(connection: Connection, name: str, label: str) -> int | None:
    """The revision of a class, if it is there."""
    query = select(classes.c.revision).join(collections).where(collections.c.name == name, classes.c.label == label)
    return connection.execute(query).scalar()


def content(connection: Connection, name: str) -> Content | None:
    """All of a collection in one reading; None where it is not there."""
    row = collection_row(connection, name)
    if row is None:
        return None
    query = (
        select(classes.c.label, classes.c.description, examples.c.text)
        .outerjoin(examples)
        .where(classes.c.collection_id == row.id)
        .order_by(classes.c.position, examples.c.position)
    )
    texts: dict[str, list[str]] = {}
    descriptions: dict[str, str] = {}
    for label, description, text in connection.execute(query):
        found = texts.setdefault(label, [])
        if text is not None:
            found.append(text)
        if description:
            descriptions[label] = description
    return Content(name, row.revision, dict(row.settings), texts, descriptions)


def history(connection: Connection, name: str, most: int, after: int = 0) -> History:
    """The last changes of a collection, newest first; also of one that was removed."""
    query = select(changes).where(changes.c.collection == name, changes.c.id > after)
    rows = connection.execute(query.order_by(changes.c.id.desc()).limit(most)).all()
    last = last_undoable(connection, name)
    if not rows and last is None and not after:
        raise no_such_collection(name)
    found = [
        Change(
            revision=row.id, at=row.at, who=row.who, action=row.action, label=row.label, summary=row.summary,
            undone=row.undone, undoes=row.undoes,
        )
        for row in rows
    ]  # fmt: skip
    return History(changes=found, undoable=last.id if last is not None else None)


def last_undoable(connection: Connection, name: str) -> Any:
    """The last change that was neither undone nor is an undo itself; None where it is what the service began with."""
    query = (
        select(changes)
        .where(changes.c.collection == name, changes.c.undoes.is_(None), changes.c.undone.is_(False))
        .order_by(changes.c.id.desc())
        .limit(1)
    )
    last = connection.execute(query).first()
    return None if last is None or last.who == SERVICE else last

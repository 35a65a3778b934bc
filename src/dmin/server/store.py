"""The durable store: changes that are on disk when they are answered, with history, undo and repeated requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel
from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from dmin.server import queries
from dmin.server.database import Database, now
from dmin.server.draft import Draft, inverse
from dmin.server.problems import Problem, busy
from dmin.server.schemas import Changed
from dmin.server.settings import Limits
from dmin.server.tables import answers, changes

_KEPT_ANSWERS = timedelta(hours=24)


@dataclass(frozen=True)
class Condition:
    """What the caller knows about the state (If-Match, If-None-Match), and the number of its request."""

    match: int | None = None  # the revision that it saw
    absent: bool = False  # it expects that the thing is not there
    idempotency_key: str | None = None
    request: str = ""  # digest of method, path and body


@dataclass(frozen=True)
class Outcome:
    """The answer to a change: a status, a body, and the revision for the ETag."""

    status: int
    body: dict[str, Any]
    revision: int | None
    repeated: bool = False  # it was answered before, and nothing was done now


@dataclass(frozen=True)
class Edit:
    """One change: what it is called, what it does, and what is answered."""

    action: str
    work: Callable[[Draft], str]  # edits, and returns a summary
    label: str | None = None
    status: int = 200
    represent: Callable[[Connection, Changed], BaseModel] | None = None  # without one: `Changed`
    creates: bool = False  # may the collection be missing?
    undoes: int | None = None


class Store:
    """Collections in a database."""

    def __init__(self, database: Database, limits: Limits | None = None) -> None:
        self.database = database
        self.limits = limits or Limits()

    def change(self, name: str, edit: Edit, who: str, condition: Condition | None = None) -> Outcome:
        """Carry out an edit in one transaction; when this returns, it is on disk."""
        condition = condition or Condition()
        try:
            with self.database.writing() as connection:
                return self._change(connection, name, edit, who, condition)
        except IntegrityError as error:  # two made the same thing at once, and the other one was first
            raise busy(
                "Another change was made at the same moment; nothing was changed. Try again.", "conflict"
            ) from error

    def _change(self, connection: Connection, name: str, edit: Edit, who: str, condition: Condition) -> Outcome:
        known = self._answered(connection, who, condition)
        if known is not None:
            return known
        row = queries.collection_row(connection, name, lock=True)
        if row is None and not edit.creates:
            raise queries.no_such_collection(name)
        self._check(connection, name, row, edit, condition)
        draft = Draft(connection, row, name, who, self.limits)
        summary = edit.work(draft)
        done = self._record(connection, draft, edit, summary, row)
        body = (edit.represent(connection, done) if edit.represent else done).model_dump(mode="json")
        outcome = Outcome(edit.status, body, body.get("revision", done.revision))
        self._remember(connection, who, condition, outcome)
        self.database.notify(connection, name)
        return outcome

    def undo(self, name: str, who: str, condition: Condition | None = None) -> Outcome:
        """Take back the last change that was not taken back yet; also the removal of the collection."""
        condition = condition or Condition()
        with self.database.writing() as connection:
            known = self._answered(connection, who, condition)
            if known is not None:
                return known
            queries.collection_row(connection, name, lock=True)
            last = queries.last_undoable(connection, name)
            if last is None:
                raise Problem(409, "nothing-to-undo", f"There is no change of {name!r} to undo.")

            def work(draft: Draft) -> str:
                draft.apply(inverse(last.delta))
                connection.execute(update(changes).where(changes.c.id == last.id).values(undone=True))
                return f"undone: {last.summary}"

            edit = Edit("undo", work, last.label, creates=True, undoes=last.id)
            return self._change(connection, name, edit, who, condition)

    def _check(self, connection: Connection, name: str, row: Any, edit: Edit, condition: Condition) -> None:
        """Compare what the caller saw with what is there."""
        if condition.match is None and not condition.absent:
            return
        there: int | None = row.revision if row is not None else None
        if edit.label is not None and edit.undoes is None:
            there = queries.class_revision(connection, name, edit.label)
        if condition.absent and there is None:
            return
        if condition.match is not None and there == condition.match:
            return
        since = queries.history(connection, name, 20, after=condition.match or 0).changes
        since = [change for change in since if edit.label is None or change.label in (edit.label, None)]
        raise Problem(
            412,
            "changed-meanwhile",
            "It was changed since you read it: read it again, then repeat your change.",
            {"ETag": f'"{there}"'} if there is not None else {},
            revision=there,
            changes=[change.model_dump(mode="json") for change in since],
        )

    def _record(self, connection: Connection, draft: Draft, edit: Edit, summary: str, row: Any) -> Changed:
        """Write the history; a change that changed nothing is not one."""
        delta = draft.delta
        if not delta["collection"] and not delta["classes"] and not delta["examples"]:
            return Changed(collection=draft.name, revision=row.revision, action="nothing", summary="nothing changed")
        values = {
            "collection": draft.name, "at": now(), "who": draft.who, "action": edit.action, "label": edit.label,
            "summary": summary, "delta": delta, "undoes": edit.undoes, "undone": False,
        }  # fmt: skip
        revision: int = connection.execute(insert(changes).values(values)).inserted_primary_key[0]  # type: ignore[index]
        draft.finish(revision)
        signs = [item[0] for item in delta["examples"]]
        return Changed(
            collection=draft.name, revision=revision, action=edit.action, summary=summary,
            added=signs.count("+"), removed=signs.count("-"),
        )  # fmt: skip

    # Requests that are sent again

    def _answered(self, connection: Connection, who: str, condition: Condition) -> Outcome | None:
        if condition.idempotency_key is None:
            return None
        found = (answers.c.who == who) & (answers.c.key == condition.idempotency_key)
        row = connection.execute(select(answers).where(found)).first()
        if row is None:
            return None
        if row.request != condition.request:
            raise Problem(
                422, "idempotency-key-reused", "This Idempotency-Key was used for another request: take a new one."
            )
        return Outcome(row.status, row.body, row.revision, repeated=True)

    def _remember(self, connection: Connection, who: str, condition: Condition, outcome: Outcome) -> None:
        if condition.idempotency_key is None:
            return
        old = (datetime.now(UTC) - _KEPT_ANSWERS).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        connection.execute(delete(answers).where(answers.c.at < old))
        values = {
            "who": who, "key": condition.idempotency_key, "request": condition.request, "status": outcome.status,
            "body": outcome.body, "revision": outcome.revision, "at": now(),
        }  # fmt: skip
        connection.execute(insert(answers).values(values))

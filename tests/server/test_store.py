"""The store on SQLite and on a real PostgreSQL: history, undo, conditions, repeated requests, migrations."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text

from dmin.server import edits, queries
from dmin.server.database import Database
from dmin.server.problems import Problem
from dmin.server.schemas import NewCollection
from dmin.server.settings import Limits
from dmin.server.store import Condition, Edit, Store
from dmin.server.tables import changes, metadata

START = {"refund": ["money back", "return what I paid"], "parcel": ["where is my order"]}


def make(store: Store, name: str = "default", classes: dict[str, list[str]] | None = None) -> int:
    new = NewCollection(name=name, classes=START if classes is None else classes)
    return int(store.change(name, edits.create_collection(new), "test").revision or 0)


def examples(store: Store, name: str = "default") -> Any:
    with store.database.reading() as connection:
        found = queries.content(connection, name)
    return None if found is None else (list(found.examples.items()), found.descriptions, found.settings)


def test_the_migrations_make_the_tables_of_the_code(store: Store) -> None:
    with store.database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_migrating_again_changes_nothing(store: Store) -> None:
    make(store)
    store.database.migrate()
    assert examples(store)[0] == list(START.items())


def test_sqlite_writes_ahead_and_syncs(tmp_path: Any) -> None:
    database = Database(str(tmp_path / "s.sqlite"))
    with database.reading() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2  # FULL
        assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1
    database.close()


def test_history_says_who_what_and_when(store: Store) -> None:
    make(store)
    store.change("default", edits.add_examples("refund", ["pay me back"]), "ann")
    with store.database.reading() as connection:
        found = queries.history(connection, "default", 10)
    assert [(item.who, item.action) for item in found.changes] == [("ann", "add-examples"), ("test", "create")]
    assert found.changes[0].summary == "1 example added to refund"
    assert found.changes[0].at.endswith("Z")
    assert found.undoable == found.changes[0].revision


def test_undo_walks_back_and_keeps_order(store: Store) -> None:
    make(store)
    before = examples(store)
    store.change("default", edits.put_class("default", "refund", ["new text", "money back"], "about money"), "a")
    store.change("default", edits.delete_class("parcel"), "a")
    store.change("default", edits.patch_class("default", "refund", "repayment", None, False), "a")
    for _ in range(3):
        store.undo("default", "b")
    assert examples(store) == before
    store.undo("default", "b")  # the collection itself
    assert examples(store) is None
    with pytest.raises(Problem) as caught:
        store.undo("default", "b")
    assert caught.value.status == 409


def test_undo_brings_a_removed_collection_back(store: Store) -> None:
    make(store)
    before = examples(store)
    store.change("default", edits.delete_collection(), "a")
    assert examples(store) is None
    store.undo("default", "a")
    assert examples(store) == before


def test_revisions_only_grow_also_when_a_name_is_used_again(store: Store) -> None:
    first = make(store)
    store.change("default", edits.delete_collection(), "a")
    assert make(store) > first + 1


def test_a_change_of_nothing_is_no_change(store: Store) -> None:
    revision = make(store)
    outcome = store.change("default", edits.add_examples("refund", ["money back"]), "a")
    assert outcome.revision == revision
    assert outcome.body["action"] == "nothing"


def test_if_match_tells_what_changed(store: Store) -> None:
    make(store)
    with store.database.reading() as connection:
        seen = queries.one_class(connection, "default", "refund").revision
    store.change("default", edits.add_examples("parcel", ["is it sent"]), "ann")
    store.change("default", edits.add_examples("refund", ["mine"]), "ann", Condition(match=seen))  # parcel is another
    with pytest.raises(Problem) as caught:
        store.change("default", edits.add_examples("refund", ["yours"]), "bob", Condition(match=seen))
    problem = caught.value
    assert problem.status == 412
    assert [(item["who"], item["label"]) for item in problem.more["changes"]] == [("ann", "refund")]
    assert problem.headers["ETag"] == f'"{problem.more["revision"]}"'
    assert ("yours" in str(examples(store))) is False


def test_if_none_match_makes_only_what_is_not_there(store: Store) -> None:
    make(store)
    new = edits.put_class("default", "fresh", ["one"], None)
    store.change("default", new, "a", Condition(absent=True))
    with pytest.raises(Problem) as caught:
        store.change("default", new, "a", Condition(absent=True))
    assert caught.value.status == 412


def test_a_request_sent_again_is_done_once(store: Store) -> None:
    make(store)
    condition = Condition(idempotency_key="k1", request="digest")
    first = store.change("default", edits.add_examples("refund", ["again"]), "a", condition)
    second = store.change("default", edits.add_examples("refund", ["again"]), "a", condition)
    assert second.repeated
    assert second.body == first.body
    assert first.body["added"] == 1
    with pytest.raises(Problem, match="another request"):
        other = Condition(idempotency_key="k1", request="other")
        store.change("default", edits.add_examples("refund", ["else"]), "a", other)
    # another caller's key of the same name is another key
    assert not store.change("default", edits.add_examples("refund", ["b"]), "b", condition).repeated


def test_a_failed_change_leaves_nothing(store: Store) -> None:
    make(store)
    before = examples(store)

    def work(draft: Any) -> str:
        draft.put_class("half", None)
        draft.add_examples("half", ["text"])
        raise Problem(422, "x", "stop")

    with pytest.raises(Problem):
        store.change("default", Edit("broken", work), "a")
    assert examples(store) == before
    with store.database.reading() as connection:
        assert len(connection.execute(select(changes)).all()) == 1


def test_limits_of_classes_and_examples(store: Store) -> None:
    store.limits = Limits(classes=3, examples=3)
    make(store)
    store.change("default", edits.add_examples("third", ["x"]), "a")
    with pytest.raises(Problem, match="3 classes"):
        store.change("default", edits.add_examples("fourth", ["x"]), "a")
    with pytest.raises(Problem, match="3 examples"):
        store.change("default", edits.add_examples("refund", ["x", "y"]), "a")


def test_writers_at_the_same_time_lose_nothing(store: Store) -> None:
    make(store)

    def write(number: int) -> None:
        for step in range(5):
            store.change("default", edits.add_examples("refund", [f"text {number} {step}"]), f"w{number}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = dict(examples(store)[0])["refund"]
    assert len(texts) == 2 + 20
    with store.database.reading() as connection:
        assert len(queries.history(connection, "default", 100).changes) == 21


LABELS = st.sampled_from(["a", "b", "c/d", "e f"])
TEXTS = st.lists(st.sampled_from(["one", "two", "three", "four", "五"]), min_size=1, max_size=3, unique=True)
STEPS = st.one_of(
    st.tuples(st.just("put"), LABELS, TEXTS),
    st.tuples(st.just("add"), LABELS, TEXTS),
    st.tuples(st.just("delete"), LABELS, TEXTS),
    st.tuples(st.just("rename"), LABELS, TEXTS),
    st.tuples(st.just("describe"), LABELS, TEXTS),
)


@given(steps=st.lists(STEPS, min_size=1, max_size=8))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_undoing_any_changes_gives_back_every_state(store: Store, steps: list[Any]) -> None:
    name = f"c{threading.get_ident()}-{id(steps)}"
    make(store, name, {"a": ["start"], "z": ["end"]})
    states = [examples(store, name)]
    for kind, label, texts in steps:
        edit = {
            "put": lambda label=label, texts=texts: edits.put_class(name, label, texts, None),
            "add": lambda label=label, texts=texts: edits.add_examples(label, texts),
            "delete": lambda label=label: edits.delete_class(label),
            "rename": lambda label=label, texts=texts: edits.patch_class(name, label, texts[0], None, False),
            "describe": lambda label=label, texts=texts: edits.patch_class(name, label, None, texts[0], True),
        }[kind]()
        try:
            store.change(name, edit, "h")
        except Problem as problem:
            assert problem.status in (404, 409)
        if examples(store, name) != states[-1]:
            states.append(examples(store, name))
    for state in reversed(states[:-1]):
        store.undo(name, "h")
        assert examples(store, name) == state
    store.change(name, edits.delete_collection(), "h")

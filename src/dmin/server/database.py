"""The connection to the store: SQLite in WAL mode or PostgreSQL, migrated to the newest schema when it is opened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import ArgumentError, DBAPIError

from dmin.errors import ConfigError, StorageError, one_line
from dmin.server.settings import store_url

CHANNEL = "dmin_changes"  # of LISTEN / NOTIFY
_MIGRATION_LOCK = 0x646D696E  # of PostgreSQL's advisory locks
_BUSY = 15_000  # milliseconds that a writer waits for another one (SQLite)


def now() -> str:
    """The time as the store keeps it: ISO 8601, UTC, sorts as text."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Database:
    """Transactions on one store."""

    def __init__(self, store: str) -> None:
        self.url = store_url(store)
        self.is_sqlite = self.url.startswith("sqlite")
        if self.is_sqlite:
            self._make_folder()
        try:
            self.engine = _sqlite(self.url) if self.is_sqlite else _postgresql(self.url)
        except (ArgumentError, ValueError) as error:
            raise ConfigError(f"--store: not a usable address ({one_line(error)})") from error

    def _make_folder(self) -> None:
        folder = Path(self.url.removeprefix("sqlite:///")).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot make {folder}: {error.strerror}") from error

    def migrate(self) -> None:
        """Bring the schema to the newest version; two processes that start at once wait for each other."""
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        try:
            with self.writing() as connection:
                if not self.is_sqlite:
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except DBAPIError as error:
            raise StorageError(f"cannot open the store: {one_line(str(error.orig))}") from error

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that may write; on disk when the block ends without an error."""
        with self.engine.connect().execution_options(dmin_write=True) as connection, connection.begin():
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the store."""
        with self.engine.connect().execution_options(dmin_write=False) as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    def notify(self, connection: Connection, name: str) -> None:
        """Tell the other processes, when the transaction is on disk, that a collection (or "keys:") changed."""
        if not self.is_sqlite:
            connection.execute(text("SELECT pg_notify(:channel, :name)"), {"channel": CHANNEL, "name": name})

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _sqlite(url: str) -> Engine:
    engine = create_engine(url, json_serializer=_dump, connect_args={"timeout": _BUSY / 1000}, pool_size=8)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # BEGIN is ours: a writer must take the lock before it reads
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={_BUSY}"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        wanted = connection.get_execution_options().get("dmin_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if wanted else "BEGIN")

    return engine


def _postgresql(url: str) -> Engine:
    return create_engine(
        url,
        json_serializer=_dump,
        pool_pre_ping=True,  # a connection that the server closed is replaced, not an error
        pool_size=8,
        pool_timeout=5,
        connect_args={"connect_timeout": 3},
    )


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

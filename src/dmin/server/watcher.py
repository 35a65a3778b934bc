"""Keeps a process up to date with the store: LISTEN on PostgreSQL, a look at the revisions where there is none."""

from __future__ import annotations

import logging
import threading
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from dmin.errors import one_line
from dmin.server import queries
from dmin.server.database import CHANNEL, Database
from dmin.server.engine import Engine
from dmin.server.keys import KeyRing

_log = logging.getLogger("dmin.server")
LOOK_EVERY = 0.25  # seconds; a change of another process is seen within a second, its fit included


class Watcher:
    """A thread that fits what other processes changed."""

    def __init__(self, database: Database, engine: Engine, ring: KeyRing) -> None:
        self._database, self._engine, self._ring = database, engine, ring
        self._stop = threading.Event()
        self.reachable = True
        self._thread = threading.Thread(target=self._run, name="dmin-watcher", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        """Compare all revisions with those that are fitted, and fit what is behind."""
        with self._database.reading() as connection:
            stored = queries.revisions(connection)
        for name, revision in self._engine.known().items():
            if stored.get(name) != revision:
                self._engine.refresh(name)
        self._ring.refresh()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self._database.is_sqlite:
                    self.look()
                    self._stop.wait(LOOK_EVERY)
                else:
                    self._listen()
                self._found_again()
            except Exception as error:  # noqa: BLE001 (whatever happens to the database, the process goes on and looks again)
                self._lost(error)
                self._stop.wait(LOOK_EVERY)

    def _listen(self) -> None:
        """Wait for notices on a connection of its own until it breaks; look once at the beginning and at every pause."""
        import psycopg

        address = self._database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(address, autocommit=True, connect_timeout=3) as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            self.look()
            self._found_again()
            while not self._stop.is_set():
                heard = {notice.payload for notice in connection.notifies(timeout=LOOK_EVERY, stop_after=1)}
                for name in sorted(heard):
                    self._hear(name)
                if not heard:
                    # A server that went away does not say so by itself. And a notice can pass unheard: behind a pool of
                    # connections, or while the collection is fitted for the first time and not yet known.
                    connection.execute("SELECT 1")
                    self.look()

    def _hear(self, name: str) -> None:
        if name.endswith(":"):
            self._ring.refresh()
        elif name in self._engine.known():
            self._engine.refresh(name)

    def _lost(self, error: Any) -> None:
        if self.reachable:
            kind = "store" if isinstance(error, SQLAlchemyError) else type(error).__name__
            _log.warning("the store cannot be reached (%s): %s", kind, one_line(str(error)))
        self.reachable = False

    def _found_again(self) -> None:
        if not self.reachable:
            _log.info("the store can be reached again")
        self.reachable = True

"""The parts of one running service, made and closed in order."""

from __future__ import annotations

from dmin.server.batching import Batcher
from dmin.server.database import Database
from dmin.server.engine import Engine
from dmin.server.keys import KeyRing
from dmin.server.observing import Metrics
from dmin.server.settings import Settings
from dmin.server.store import Store
from dmin.server.watcher import Watcher


class Service:
    """Store, classifiers, queue, keys and metrics of one process."""

    def __init__(self, settings: Settings, database: Database | None = None) -> None:
        self.settings = settings
        self.database = database or Database(settings.store)
        self.database.migrate()
        self.store = Store(self.database, settings.limits)
        self.ring = KeyRing(self.database)
        self.metrics = Metrics()
        self.engine = Engine(settings, self.database)
        self.batcher = Batcher(
            self.engine, settings.threads, settings.batch, settings.limits.queue, self.metrics.batches.observe
        )
        self.metrics.waiting.set_function(lambda: self.batcher.waiting)
        self.metrics.collections.set_function(lambda: len(self.engine.known()))
        self.watcher: Watcher | None = None

    def start(self) -> None:
        """Fit what is stored and watch for what others change."""
        from dmin.server import queries

        with self.database.reading() as connection:
            names = list(queries.revisions(connection))
        for name in names:
            self.engine.refresh(name)
        self.watcher = Watcher(self.database, self.engine, self.ring)

    def close(self) -> None:
        """Finish what was accepted, then let go of the store."""
        self.batcher.close()
        if self.watcher is not None:
            self.watcher.close()
        self.database.close()

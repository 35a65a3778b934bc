"""Settings of a service: where it listens, what it stores, and what a request may cost."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import quote

from dmin.errors import ConfigError
from dmin.files import user_path

DEFAULT_PORT = 8765
DEFAULT_COLLECTION = "default"


@dataclass(frozen=True)
class Limits:
    """Upper bounds of a request; what exceeds one is refused with 413, 422, 429 or 503."""

    body_bytes: int = 2 << 20
    upload_bytes: int = 32 << 20  # of files: import, evaluate, suggest and map
    texts: int = 256  # per classify request
    pile: int = 20_000  # texts of one suggest, evaluate or map request
    text_length: int = 10_000
    examples: int = 1_000  # per class
    classes: int = 2_000  # per collection
    collections: int = 1_000
    requests_per_minute: int = 6_000  # per key; 0 means no limit
    queue: int = 2_048  # texts waiting for the encoder
    deadline: float = 10.0  # seconds that a text may wait


@dataclass(frozen=True)
class Settings:
    """One service process.

    Args:
        store: a path (SQLite) or a URL (`postgresql://...`).
        host: the address to listen on; a public one needs a key.
        port: the port to listen on; 0 chooses a free one.
        model: what `FewShotClassifier(model=...)` takes.
        encoder: what `FewShotClassifier(encoder=...)` takes, if anything.
        backend: what encodes.
        workers: threads that compute, each with one thread of its own; 0 means one per core.
        batch: texts in one encoder batch, at most.
        log_texts: also write texts into the log.
        origins: origins of other sites that may call the API from a browser (CORS); none by default.
        hosts: names under which the service may be called, besides loopback and `host`.
        limits: bounds of a request.
    """

    store: str = "runs/serve/store.sqlite"
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    model: str = "default"
    encoder: str | None = None
    backend: str = "auto"
    workers: int = 0
    batch: int = 32
    log_texts: bool = False
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    @property
    def public(self) -> bool:
        """Does it listen beyond loopback?"""
        return not is_loopback(self.host)

    @property
    def threads(self) -> int:
        """How many threads compute."""
        if self.workers:
            return self.workers
        allowed = getattr(os, "sched_getaffinity", None)  # not on every system
        return len(allowed(0)) if allowed else os.cpu_count() or 1


@lru_cache(maxsize=256)  # asked for every request; names come from outside, so they are bounded
def is_loopback(host: str) -> bool:
    """Is this address reachable from this machine only?"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def store_url(store: str) -> str:
    """The SQLAlchemy URL of a store: a path becomes SQLite, `postgresql://` takes psycopg.

    Raises:
        ConfigError: a URL of another kind of database.
    """
    if "://" not in store:
        path = user_path(store).resolve()
        return f"sqlite:///{quote(str(path))}" if "?" in str(path) else f"sqlite:///{path}"
    scheme, _, rest = store.partition("://")
    if scheme == "sqlite":
        return store
    if scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        return f"postgresql+psycopg://{rest}"
    raise ConfigError(f"--store {scheme}://...: a path (SQLite) or postgresql://user:password@host/database is needed")

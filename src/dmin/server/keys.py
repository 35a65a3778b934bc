"""Bearer keys: made at random, kept as digests, with a role, collections and an end."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from sqlalchemy import insert, select, update

from dmin.errors import ConfigError, DataError, unknown_name
from dmin.server.database import Database, now
from dmin.server.tables import keys

Role = Literal["read", "write", "admin"]
ROLES: tuple[Role, ...] = ("read", "write", "admin")  # each may do what those before it may
NOTICE = "keys:"  # no collection can be called so


@dataclass(frozen=True)
class Key:
    """A key as the store has it: never the key itself."""

    id: str
    digest: str
    name: str
    role: Role
    collections: tuple[str, ...] | None  # None: all of them
    created_at: str
    expires_at: str | None
    revoked_at: str | None

    @property
    def state(self) -> str:
        """ "active", "expired" or "revoked"."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= now() else "active"


def create_key(
    database: Database, name: str, role: str, collections: tuple[str, ...] = (), days: float | None = None
) -> tuple[str, Key]:
    """Make a key; returns it, the only time that it can be seen, and what the store keeps."""
    if role not in ROLES:
        raise unknown_name("role", role, ROLES)
    if not name.strip() or len(name) > 80:
        raise ConfigError(f"key name {name[:80]!r}: 1 to 80 characters are needed, like 'website'")
    if days is not None and days <= 0:
        raise ConfigError(f"--days {days:g}: a number above 0 is needed")
    identifier = secrets.token_hex(4)
    secret = f"dmin_{identifier}_{secrets.token_urlsafe(32)}"
    end = None
    if days is not None:
        end = (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    values = {
        "id": identifier, "digest": _digest(secret), "name": name, "role": role,
        "collections": list(collections) or None, "created_at": now(), "expires_at": end, "revoked_at": None,
    }  # fmt: skip
    with database.writing() as connection:
        connection.execute(insert(keys).values(values))
        database.notify(connection, NOTICE)
    return secret, next(key for key in list_keys(database) if key.id == identifier)


def revoke_key(database: Database, identifier: str) -> None:
    """Make a key worthless, at once."""
    known = {key.id: key for key in list_keys(database)}
    if identifier not in known:
        raise unknown_name("key", identifier, known)
    if known[identifier].revoked_at:
        raise DataError(f"key {identifier!r} is revoked already")
    with database.writing() as connection:
        connection.execute(update(keys).where(keys.c.id == identifier).values(revoked_at=now()))
        database.notify(connection, NOTICE)


def list_keys(database: Database) -> list[Key]:
    """All keys that were ever made, oldest first."""
    with database.reading() as connection:
        rows = connection.execute(select(keys).order_by(keys.c.created_at, keys.c.id)).mappings().all()
    return [Key(**{**row, "collections": tuple(row["collections"]) if row["collections"] else None}) for row in rows]


class KeyRing:
    """The keys in memory, so that a request needs no database; read again when they change."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._keys: dict[str, Key] = {}
        self._lock = threading.Lock()
        self.refresh()

    def refresh(self) -> None:
        """Read the keys from the store."""
        found = {key.id: key for key in list_keys(self._database)}
        with self._lock:
            self._keys = found

    @property
    def needed(self) -> bool:
        """Was a key ever made? Then every request needs one, also after all were revoked."""
        return bool(self._keys)

    def find(self, secret: str) -> Key | None:
        """The key that was given, if it is one; takes the same time whether or not it is."""
        parts = secret.split("_", 2)
        key = self._keys.get(parts[1]) if len(parts) == 3 else None
        stored = key.digest if key is not None else "0" * 64
        return key if hmac.compare_digest(_digest(secret), stored) else None


def _digest(secret: str) -> str:
    """SHA-256: enough for a secret of 256 random bits, which no dictionary holds."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()

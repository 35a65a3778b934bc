"""The tables of the store. A change here needs a migration in `migrations/versions`."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)  # fmt: skip

NUMBER = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up by itself for INTEGER only

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)

collections = Table(
    "collections", metadata,
    Column("id", NUMBER, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("description", Text, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("revision", NUMBER, nullable=False),  # the number of its last change
    Column("position", NUMBER, nullable=False),  # the place that the next class or example gets
    Column("created_at", String(32), nullable=False),
)  # fmt: skip

classes = Table(
    "classes", metadata,
    Column("id", NUMBER, primary_key=True),
    Column("collection_id", NUMBER, ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("label", Text, nullable=False),
    Column("description", Text),
    Column("position", NUMBER, nullable=False),
    Column("revision", NUMBER, nullable=False),  # the number of its last change
    UniqueConstraint("collection_id", "label"),
)  # fmt: skip

examples = Table(
    "examples", metadata,
    Column("id", NUMBER, primary_key=True),
    Column("class_id", NUMBER, ForeignKey("classes.id", ondelete="CASCADE"), nullable=False),
    Column("text", Text, nullable=False),
    Column("digest", String(64), nullable=False),  # of the text: long texts cannot stand in an index
    Column("position", NUMBER, nullable=False),
    Column("added_at", String(32), nullable=False),
    Column("added_by", String(100), nullable=False),
    UniqueConstraint("class_id", "digest"),
)  # fmt: skip

changes = Table(
    "changes", metadata,
    Column("id", NUMBER, primary_key=True),
    Column("collection", String(100), nullable=False),  # a name, not a reference: history outlives the collection
    Column("at", String(32), nullable=False),
    Column("who", String(100), nullable=False),
    Column("action", String(40), nullable=False),
    Column("label", Text),
    Column("summary", Text, nullable=False),
    Column("delta", JSON, nullable=False),
    Column("undoes", NUMBER),
    Column("undone", Boolean, nullable=False),
    Index("ix_changes_collection_id", "collection", "id"),
    sqlite_autoincrement=True,  # a number is never given twice, also not after a deletion
)  # fmt: skip

vectors = Table(
    "vectors", metadata,
    Column("encoder", String(100), primary_key=True),
    Column("digest", String(64), primary_key=True),  # of the text
    Column("vector", LargeBinary, nullable=False),  # float32, little endian
)  # fmt: skip

keys = Table(
    "keys", metadata,
    Column("id", String(16), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("name", String(100), nullable=False),
    Column("role", String(10), nullable=False),
    Column("collections", JSON),
    Column("created_at", String(32), nullable=False),
    Column("expires_at", String(32)),
    Column("revoked_at", String(32)),
)  # fmt: skip

answers = Table(
    "answers", metadata,  # to requests with an Idempotency-Key
    Column("who", String(100), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("request", String(64), nullable=False),  # digest of method, path and body
    Column("status", Integer, nullable=False),
    Column("body", JSON, nullable=False),
    Column("revision", NUMBER),
    Column("at", String(32), nullable=False),
)  # fmt: skip

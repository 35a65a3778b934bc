"""The first schema: collections, classes, examples, vectors, history, keys, answers to repeated requests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the tables. Written out, not taken from `tables.py`, which will move on."""
    op.create_table(
        "collections",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("revision", NUMBER, nullable=False),
        sa.Column("position", NUMBER, nullable=False),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_collections"),
        sa.UniqueConstraint("name", name="uq_collections_name"),
    )
    op.create_table(
        "classes",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("collection_id", NUMBER, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("position", NUMBER, nullable=False),
        sa.Column("revision", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_classes"),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collections.id"], name="fk_classes_collection_id", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("collection_id", "label", name="uq_classes_collection_id"),
    )
    op.create_table(
        "examples",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("class_id", NUMBER, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("position", NUMBER, nullable=False),
        sa.Column("added_at", sa.String(32), nullable=False),
        sa.Column("added_by", sa.String(100), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_examples"),
        sa.ForeignKeyConstraint(["class_id"], ["classes.id"], name="fk_examples_class_id", ondelete="CASCADE"),
        sa.UniqueConstraint("class_id", "digest", name="uq_examples_class_id"),
    )
    _history_and_keys()


def _history_and_keys() -> None:
    op.create_table(
        "changes",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("collection", sa.String(100), nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("who", sa.String(100), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("label", sa.Text),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("delta", sa.JSON, nullable=False),
        sa.Column("undoes", NUMBER),
        sa.Column("undone", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_changes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_changes_collection_id", "changes", ["collection", "id"])
    op.create_table(
        "vectors",
        sa.Column("encoder", sa.String(100), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("encoder", "digest", name="pk_vectors"),
    )
    op.create_table(
        "keys",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("role", sa.String(10), nullable=False),
        sa.Column("collections", sa.JSON),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("expires_at", sa.String(32)),
        sa.Column("revoked_at", sa.String(32)),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
    )
    op.create_table(
        "answers",
        sa.Column("who", sa.String(100), nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("revision", NUMBER),
        sa.Column("at", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("who", "key", name="pk_answers"),
    )

"""Runs migrations on the connection that `Database.migrate` gives."""

from __future__ import annotations

from alembic import context

from dmin.server.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()

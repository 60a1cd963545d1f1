"""Alembic runs inside the connection that `shared.projections.migrate` hands it."""

from __future__ import annotations

from alembic import context

connection = context.config.attributes["connection"]
schema = context.config.attributes["schema"]

context.configure(
    connection=connection, version_table="schema_version", version_table_schema=schema
)
with context.begin_transaction():
    context.run_migrations()

"""The audit: actions of principals."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"

STATEMENTS = """
CREATE TABLE audit (
    entry_id text PRIMARY KEY,
    at bigint NOT NULL,
    principal text NOT NULL,
    action text NOT NULL,
    object text NOT NULL,
    whose text NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    requests integer NOT NULL
);
CREATE INDEX audit_by_time ON audit (at DESC, entry_id DESC);
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            op.execute(statement)

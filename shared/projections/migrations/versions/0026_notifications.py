"""What the notifier has yet to send, and what became of what it sent.

These tables are no read models: a rebuild of those keeps them (`roles.NOTIFIER_TABLES`).
"""

from __future__ import annotations

from alembic import op

revision = "0026"
down_revision = "0025"

STATEMENTS = """
CREATE TABLE notification (tenant text NOT NULL, target text NOT NULL, event_id text NOT NULL,
    at bigint NOT NULL, due_at bigint NOT NULL, attempts integer NOT NULL DEFAULT 0,
    body text NOT NULL, PRIMARY KEY (tenant, target, event_id));
CREATE INDEX notification_due ON notification (tenant, target, due_at, event_id);
CREATE TABLE notification_target (tenant text NOT NULL, target text NOT NULL,
    created_at bigint NOT NULL, delivered bigint NOT NULL DEFAULT 0,
    given_up bigint NOT NULL DEFAULT 0, dropped bigint NOT NULL DEFAULT 0,
    failing_since bigint NOT NULL DEFAULT 0, disabled_at bigint NOT NULL DEFAULT 0,
    last_at bigint NOT NULL DEFAULT 0, last_error text NOT NULL DEFAULT '',
    tested_at bigint NOT NULL DEFAULT 0, test_result text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, target));
CREATE TABLE notification_job (job_id text PRIMARY KEY, tenant text NOT NULL, user_id text NOT NULL,
    name text NOT NULL, notify text NOT NULL, size integer NOT NULL,
    succeeded integer NOT NULL DEFAULT 0, failed integer NOT NULL DEFAULT 0,
    cancelled integer NOT NULL DEFAULT 0, rejected integer NOT NULL DEFAULT 0);
CREATE TABLE notification_cursor (ledger text NOT NULL, partition integer NOT NULL,
    state text NOT NULL, PRIMARY KEY (ledger, partition))
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n"):
        op.execute(statement)

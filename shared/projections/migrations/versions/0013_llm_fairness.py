"""How evenly endpoints serve waiting tenants, minute by minute, and what it is folded from."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"

STATEMENTS = """
CREATE TABLE llm_open (
    open_id text PRIMARY KEY,
    partition integer NOT NULL,
    request_id text NOT NULL,
    tenant text NOT NULL,
    prompt_tokens bigint NOT NULL,
    made_tokens bigint NOT NULL,
    is_running boolean NOT NULL
);

CREATE TABLE llm_backlog (
    backlog_id text PRIMARY KEY,
    partition integer NOT NULL,
    tenant text NOT NULL,
    endpoint text NOT NULL,
    weight double precision NOT NULL,
    waiting integer NOT NULL,
    waiting_since bigint NOT NULL,
    minute_at bigint NOT NULL,
    units double precision NOT NULL
);

CREATE INDEX llm_backlog_active ON llm_backlog (partition, tenant);

CREATE TABLE llm_fairness (
    fairness_id text PRIMARY KEY,
    partition integer NOT NULL,
    endpoint text NOT NULL,
    began_at bigint NOT NULL,
    span_ms integer NOT NULL,
    minutes integer NOT NULL,
    tenants integer NOT NULL,
    largest_gap double precision NOT NULL,
    mean_gap double precision NOT NULL
);

CREATE INDEX llm_fairness_began ON llm_fairness (partition, began_at);

CREATE INDEX llm_fairness_endpoint ON llm_fairness (endpoint, began_at DESC);
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            op.execute(statement)

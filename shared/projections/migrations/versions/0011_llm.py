"""LLM endpoints with their settings, what each request was and cost, and use by the hour."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"

STATEMENTS = """
ALTER TABLE endpoint ADD COLUMN settings text NOT NULL DEFAULT '{}';

ALTER TABLE endpoint ADD COLUMN deleted_at bigint NOT NULL DEFAULT 0;

UPDATE endpoint SET settings = json_build_object(
    'endpoint', endpoint, 'partition', partition, 'batch_tokens', batch_tokens)::text;

ALTER TABLE endpoint DROP COLUMN tokens_per_s;

ALTER TABLE endpoint DROP COLUMN batch_tokens;

ALTER TABLE llm_request ADD COLUMN user_id text NOT NULL DEFAULT '';

ALTER TABLE llm_request ADD COLUMN model text NOT NULL DEFAULT '';

ALTER TABLE llm_request ADD COLUMN interaction text NOT NULL DEFAULT '';

ALTER TABLE llm_request ADD COLUMN stage integer NOT NULL DEFAULT 0;

ALTER TABLE llm_request ADD COLUMN max_output_tokens bigint NOT NULL DEFAULT 0;

ALTER TABLE llm_request ADD COLUMN ahead integer NOT NULL DEFAULT 0;

ALTER TABLE llm_request ADD COLUMN outcome text NOT NULL DEFAULT '';

ALTER TABLE llm_request ADD COLUMN detail text NOT NULL DEFAULT '';

ALTER TABLE llm_request ADD COLUMN retry_after_s double precision;

ALTER TABLE llm_request ADD COLUMN upstream text NOT NULL DEFAULT '';

ALTER TABLE llm_request ADD COLUMN cached_tokens bigint NOT NULL DEFAULT 0;

ALTER TABLE llm_request ADD COLUMN cost double precision NOT NULL DEFAULT 0;

UPDATE llm_request SET outcome = 'completed' WHERE state = 'finished';

UPDATE llm_request SET queued_at = ended_at WHERE queued_at = 0;

CREATE INDEX llm_request_newest ON llm_request (queued_at DESC, request_id DESC);

CREATE INDEX llm_request_ended ON llm_request (partition, ended_at) WHERE ended_at > 0;

ALTER TABLE llm_tenant ADD COLUMN cached_tokens bigint NOT NULL DEFAULT 0;

ALTER TABLE llm_tenant ADD COLUMN wasted_tokens bigint NOT NULL DEFAULT 0;

ALTER TABLE llm_tenant ADD COLUMN cost double precision NOT NULL DEFAULT 0;

CREATE TABLE llm_usage (
    usage_id text PRIMARY KEY,
    partition integer NOT NULL,
    hour_at bigint NOT NULL,
    tenant text NOT NULL,
    endpoint text NOT NULL,
    model text NOT NULL,
    application text NOT NULL,
    user_id text NOT NULL,
    reason text NOT NULL,
    requests bigint NOT NULL,
    rejected bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    wasted_tokens bigint NOT NULL,
    cost double precision NOT NULL,
    estimated_ms bigint NOT NULL,
    waited_ms bigint NOT NULL,
    longest_wait_ms bigint NOT NULL,
    served_ms bigint NOT NULL
);

CREATE INDEX llm_usage_hour ON llm_usage (partition, hour_at);

CREATE INDEX llm_usage_tenant ON llm_usage (tenant, hour_at);
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            op.execute(statement)

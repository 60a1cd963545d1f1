"""How the engines of endpoints do, and since when budgets count."""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"

STATEMENTS = """
CREATE TABLE llm_endpoint (
    endpoint_id text PRIMARY KEY,
    partition integer NOT NULL,
    endpoint text NOT NULL,
    engines text NOT NULL,
    noted_at bigint NOT NULL,
    budgets_since text NOT NULL
);

CREATE INDEX llm_endpoint_name ON llm_endpoint (endpoint);
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            op.execute(statement)

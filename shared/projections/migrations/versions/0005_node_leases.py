"""The state of a node's lease: how long it is silent, and when it is lost."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"

STATEMENTS = """
ALTER TABLE node ADD COLUMN state text NOT NULL DEFAULT '';
ALTER TABLE node ADD COLUMN silent_ms bigint NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN suspected_at bigint NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN lost_after_ms bigint NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN generation bigint NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN unusable_gpus text NOT NULL DEFAULT '[]';
ALTER TABLE node ADD COLUMN fencing text NOT NULL DEFAULT '';
UPDATE node SET state = CASE WHEN alive THEN 'joined' ELSE 'lost' END;
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            op.execute(statement)

"""The message of a quarantined input, and how an operator settled it."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"

STATEMENTS = """
ALTER TABLE dead_letter ADD COLUMN message_id text NOT NULL DEFAULT '';
ALTER TABLE dead_letter ADD COLUMN message_type text NOT NULL DEFAULT '';
ALTER TABLE dead_letter ADD COLUMN is_quarantined boolean NOT NULL DEFAULT false;
ALTER TABLE dead_letter ADD COLUMN decision text NOT NULL DEFAULT '';
ALTER TABLE dead_letter ADD COLUMN decision_reason text NOT NULL DEFAULT '';
ALTER TABLE dead_letter ADD COLUMN decided_at bigint NOT NULL DEFAULT 0;
ALTER TABLE dead_letter ADD COLUMN outcome text NOT NULL DEFAULT '';
ALTER TABLE dead_letter ADD COLUMN state text NOT NULL DEFAULT 'rejected';
ALTER TABLE dead_letter ADD COLUMN settled boolean NOT NULL DEFAULT false;
UPDATE dead_letter SET is_quarantined = true, state = 'open' WHERE reason LIKE 'set aside: %';
UPDATE dead_letter d SET
    decision = split_part(c.type, '.', 2),
    decided_at = c.at,
    state = CASE c.type WHEN 'input.skip.v1' THEN 'skipped' ELSE 'retried' END,
    outcome = CASE c.type WHEN 'input.skip.v1' THEN '' ELSE 'decided' END,
    settled = true
FROM command c
WHERE d.is_quarantined AND c.ledger = 'access' AND c.accepted AND NOT c.duplicate
    AND c.type IN ('input.skip.v1', 'input.retry.v1') AND c.of = d.dead_id;
CREATE INDEX dead_letter_by_time ON dead_letter (at DESC, dead_id DESC);
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            op.execute(statement)

"""Senders of commands, and indices of lists and counts that stay fast while ended jobs add up.

A partial index has open jobs, or one row for each submission. Row-level security evaluates a
function that is not leakproof, such as `starts_with`, only behind its own condition: prefixes are
ranges in the order of bytes, which an index has.
"""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"

SUBMISSION = "array_index IS NULL OR array_index = 0 OR strpos(job_id, '.') = 0"
STATEMENTS = f"""
DROP INDEX job_placement_alive;
CREATE INDEX job_placement_open ON job_placement (tenant, phase)
    WHERE phase NOT IN ('succeeded', 'failed', 'cancelled');
CREATE INDEX job_admission_deferred ON job_admission (tenant) WHERE state = 'deferred';
CREATE INDEX job_admission_admitted ON job_admission
    (tenant, partition, decided_at DESC, job_id DESC) WHERE state = 'admitted';
CREATE INDEX job_admission_of_tenant ON job_admission (tenant, submitted_at DESC, job_id DESC);
CREATE INDEX job_admission_submissions ON job_admission (submitted_at DESC, job_id DESC)
    WHERE {SUBMISSION};
CREATE INDEX job_admission_tenants_submissions ON job_admission
    (tenant, submitted_at DESC, job_id DESC) WHERE {SUBMISSION};
CREATE INDEX job_admission_names ON job_admission (tenant, name COLLATE "C") WHERE {SUBMISSION};
DROP INDEX job_admission_prefix;
CREATE INDEX job_admission_prefix ON job_admission (job_id COLLATE "C") INCLUDE (tenant, state);
CREATE INDEX job_placement_prefix ON job_placement (job_id COLLATE "C") INCLUDE (tenant, phase);
ALTER TABLE command ADD COLUMN principal text NOT NULL DEFAULT '';
CREATE INDEX command_submission ON command (of)
    WHERE type = 'job.submit.v1' AND accepted AND NOT duplicate
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n"):
        op.execute(statement)

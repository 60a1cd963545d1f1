"""Jobs with several pools, and where a job went that left its pool."""

from __future__ import annotations

from alembic import op

revision = "0027"
down_revision = "0026"

STATEMENTS = """
ALTER TABLE job_admission ADD COLUMN pools text NOT NULL DEFAULT '';

ALTER TABLE job_admission ADD COLUMN transferred_to text NOT NULL DEFAULT 'null';

ALTER TABLE job_placement ADD COLUMN pools text NOT NULL DEFAULT '';

ALTER TABLE job_placement ADD COLUMN transferred_to text NOT NULL DEFAULT 'null';

CREATE INDEX job_admission_several ON job_admission (job_id)
    WHERE pools <> '' AND state = 'deferred';

CREATE INDEX job_placement_several ON job_placement (job_id)
    WHERE pools <> '' AND phase = 'waiting';

CREATE INDEX job_admission_transferred ON job_admission (job_id, decided_at)
    WHERE transferred_to <> 'null';

CREATE INDEX job_placement_transferred ON job_placement (job_id, ended_at)
    WHERE transferred_to <> 'null';

CREATE OR REPLACE VIEW job AS
SELECT
    a.job_id, a.partition, a.tenant, a.name, a.user_id, a.priority_class, a.workers, a.gpus,
    a.array_index, a.spec, a.submitted_at, a.cancel_requested_at, a.traceparent,
    CASE
        WHEN a.state IN ('rejected', 'cancelled', 'deferred') THEN a.state
        WHEN p.job_id IS NULL THEN 'admitted'
        ELSE p.phase
    END AS phase,
    COALESCE(p.attempt, 0) AS attempt,
    CASE WHEN a.state IN ('rejected', 'cancelled', 'deferred') THEN a.reason
         WHEN p.held_reason <> '' THEN p.held_reason
         ELSE COALESCE(p.reason, '') END AS reason,
    a.detail, p.exit_code,
    COALESCE(p.waiting_since, 0) AS waiting_since,
    COALESCE(p.placed_at, 0) AS placed_at,
    COALESCE(p.started_at, 0) AS started_at,
    CASE WHEN a.state IN ('rejected', 'cancelled') THEN a.decided_at
         ELSE COALESCE(p.ended_at, 0) END AS ended_at,
    COALESCE(p.short_gpus, 0) AS short_gpus,
    COALESCE(p.preemptions, 0) AS preemptions,
    COALESCE(p.gpu_ms, 0) AS gpu_ms,
    COALESCE(p.ran_ms, 0) AS ran_ms,
    COALESCE(p.nodes, '[]') AS nodes,
    COALESCE(p.moves, 0) AS moves,
    COALESCE(p.failure, 'null') AS failure,
    COALESCE((SELECT n.backend FROM node n WHERE n.node_id = p.nodes::jsonb ->> 0), '') AS backend,
    COALESCE(p.checkpointed_at, 0) AS checkpointed_at,
    COALESCE(p.checkpoint_step, 0) AS checkpoint_step,
    COALESCE(p.progressed_at, 0) AS progressed_at,
    COALESCE(p.progress_step, 0) AS progress_step,
    COALESCE(p.progress_total, 0) AS progress_total,
    COALESCE(p.expected_end_at, 0) AS expected_end_at,
    CASE WHEN a.transferred_to <> 'null' THEN a.transferred_to
         ELSE COALESCE(p.transferred_to, 'null') END AS transferred_to
FROM job_admission a LEFT JOIN job_placement p USING (job_id);
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            op.execute(statement)

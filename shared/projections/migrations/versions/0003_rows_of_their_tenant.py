"""Views that row-level security can guard: none shows a row of a tenant who may not see it."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"

STATEMENTS = """
DROP VIEW queue;
DROP VIEW gpu;

CREATE VIEW gpu AS
SELECT
    n.partition, n.node_id, n.gpu_type, g.gpu,
    n.alive AND NOT n.cordoned AS usable,
    COALESCE(sum(l.gpu_milli), 0)::integer AS used_milli
FROM node n
CROSS JOIN LATERAL generate_series(0, n.gpus - 1) AS g (gpu)
LEFT JOIN allocation l
    ON l.node_id = n.node_id AND l.released_at = 0 AND l.gpus::jsonb @> to_jsonb(g.gpu)
GROUP BY n.partition, n.node_id, n.gpu_type, g.gpu, n.alive, n.cordoned;

CREATE VIEW rank_head AS
SELECT partition, base_policy, learned, runtime, model_sha256, waiting, terms, at,
       (ranked::jsonb -> 0 ->> 'score')::float8 AS best_score
FROM queue_rank;

CREATE VIEW ranked_job WITH (security_barrier) AS
SELECT p.job_id, p.tenant, p.partition, e.position, (e.value ->> 'score')::float8 AS score,
       CASE WHEN e.position > 1
            THEN (q.ranked::jsonb -> (e.position - 2)::int ->> 'score')::float8 END AS score_ahead
FROM queue_rank q
CROSS JOIN LATERAL jsonb_array_elements(q.ranked::jsonb) WITH ORDINALITY AS e (value, position)
JOIN job_placement p ON p.job_id = e.value ->> 'job_id' AND p.partition = q.partition
WHERE p.phase = 'waiting' AND p.tenant = current_setting('app.tenant', true)
UNION ALL
SELECT p.job_id, p.tenant, p.partition, e.position, (e.value ->> 'score')::float8 AS score,
       CASE WHEN e.position > 1
            THEN (q.ranked::jsonb -> (e.position - 2)::int ->> 'score')::float8 END AS score_ahead
FROM queue_rank q
CROSS JOIN LATERAL jsonb_array_elements(q.ranked::jsonb) WITH ORDINALITY AS e (value, position)
JOIN job_placement p ON p.job_id = e.value ->> 'job_id' AND p.partition = q.partition
WHERE p.phase = 'waiting' AND current_setting('app.tenant', true) = '*';

CREATE VIEW queue AS
SELECT
    p.partition, r.position, p.job_id, p.tenant, a.name, a.priority_class, a.gpus, p.attempt,
    p.waiting_since, p.held_reason, p.short_gpus, r.score, h.base_policy, h.model_sha256,
    h.at AS ranked_at
FROM job_placement p
LEFT JOIN job_admission a USING (job_id)
LEFT JOIN ranked_job r ON r.job_id = p.job_id AND r.partition = p.partition
LEFT JOIN rank_head h ON h.partition = p.partition AND r.job_id IS NOT NULL
WHERE p.phase = 'waiting';
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            op.execute(statement)

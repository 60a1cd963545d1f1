"""Queries of transfers between pools: what waits, what is free, and what is on its way."""

from __future__ import annotations

STAYS = """
WITH RECURSIVE stay AS (
  SELECT 1 AS number, j.job_id, j.partition, j.submitted_at, j.ended_at, j.transferred_to
  FROM job j WHERE ($1::text IS NULL OR j.tenant = $1) AND j.job_id = $2
  UNION ALL
  SELECT s.number + 1, j.job_id, j.partition, j.submitted_at, j.ended_at, j.transferred_to
  FROM stay s JOIN job j ON j.job_id = s.transferred_to::jsonb ->> 'job_id'
)
SELECT s.job_id, p.pool, s.partition, s.submitted_at, s.ended_at, s.transferred_to
FROM stay s LEFT JOIN pool p ON p.partition = s.partition ORDER BY s.number
"""
"""The stays of a job in its pools, from the one with that id on."""

WAITING = """
SELECT j.job_id, j.tenant, p.pool, j.spec, j.gpus,
       CASE WHEN j.phase = 'waiting' THEN j.waiting_since ELSE j.submitted_at END AS since
FROM job j JOIN pool p ON p.partition = j.partition
WHERE j.cancel_requested_at = 0
  AND (j.phase = 'waiting' OR j.reason IN ('quota', 'spot_quota', 'user_gpus', 'no_nodes'))
  AND j.job_id IN (SELECT b.job_id FROM job_placement b WHERE b.pools <> '' AND b.phase = 'waiting'
                   UNION ALL
                   SELECT a.job_id FROM job_admission a
                   WHERE a.pools <> '' AND a.state = 'deferred')
ORDER BY since, j.job_id LIMIT $1
"""
"""Jobs with several pools that wait in one of them."""

IDLE_POOLS = """
SELECT p.pool, p.partition FROM pool p
WHERE p.deleted_at = 0 AND p.pool = ANY($1::text[])
  AND NOT EXISTS (SELECT FROM job_placement b
                  WHERE b.partition = p.partition AND b.phase = 'waiting')
"""
"""Pools in which no job waits."""

WAITING_THERE = """
SELECT p.pool, count(b.job_id) AS waiting FROM pool p
LEFT JOIN job_placement b ON b.partition = p.partition AND b.phase = 'waiting'
WHERE p.pool = ANY($1::text[]) GROUP BY p.pool
"""
"""Jobs that wait of all tenants in each of these pools."""

FREE_NODES = """
SELECT n.partition, n.node_id, n.gpu_type, n.gpus, n.cpus, n.mem_gib, n.labels, n.unusable_gpus
FROM node n
WHERE n.partition = ANY($1::int[]) AND n.alive AND NOT n.cordoned AND n.state = 'joined'
  AND n.problems = '[]'
ORDER BY n.node_id
"""
HELD = """
SELECT a.node_id, a.gpus, a.cpus, a.mem_gib FROM allocation a
WHERE a.partition = ANY($1::int[]) AND a.released_at = 0
"""

QUOTA_LEFT = """
SELECT q.partition, q.tenant, q.guaranteed_gpus + q.borrow_gpus - COALESCE((
  SELECT sum(a.gpus) FROM job_placement b JOIN job_admission a USING (job_id)
  WHERE b.partition = q.partition AND b.tenant = q.tenant
    AND b.phase NOT IN ('succeeded', 'failed', 'cancelled')), 0) AS left_gpus
FROM quota q
WHERE q.partition = ANY($1::int[]) AND q.tenant = ANY($2::text[]) AND q.borrow_gpus IS NOT NULL
"""

GPUS_OF_USERS = """
SELECT b.partition, b.tenant, a.user_id AS "user", sum(a.gpus)::float8 AS gpus
FROM job_placement b JOIN job_admission a USING (job_id)
WHERE b.partition = ANY($1::int[]) AND b.tenant = ANY($2::text[])
  AND b.phase NOT IN ('succeeded', 'failed', 'cancelled')
GROUP BY b.partition, b.tenant, a.user_id
"""
"""GPUs of the jobs of each user in these pools, as admission counts them."""

_TRANSFERRED = """
SELECT job_id FROM job_placement WHERE transferred_to <> 'null' AND ended_at >= $1
UNION ALL
SELECT job_id FROM job_admission WHERE transferred_to <> 'null' AND decided_at >= $1
"""
UNDELIVERED = f"""
SELECT j.job_id, j.tenant, p.pool, j.transferred_to, j.traceparent,
       (SELECT NULLIF(c.principal, '') FROM command c
        WHERE c.of = j.job_id AND c.tenant = j.tenant AND c.type = 'job.submit.v1'
          AND c.accepted AND NOT c.duplicate LIMIT 1) AS submitted_by
FROM job j JOIN pool p ON p.partition = j.partition
WHERE j.job_id IN ({_TRANSFERRED})
  AND NOT EXISTS (SELECT FROM job_admission b WHERE b.job_id = j.transferred_to::jsonb ->> 'job_id')
ORDER BY j.job_id LIMIT $2
"""  # noqa: S608
"""Jobs that left a pool from `$1` ms on, and are not known in the pool that they go to."""

UNCANCELLED = f"""
SELECT b.job_id, b.tenant, p.pool
FROM job j JOIN job b ON b.job_id = j.transferred_to::jsonb ->> 'job_id'
JOIN pool p ON p.partition = b.partition
WHERE j.job_id IN ({_TRANSFERRED}) AND j.cancel_requested_at > 0
  AND b.cancel_requested_at = 0 AND (b.ended_at = 0 OR b.transferred_to <> 'null')
ORDER BY b.job_id LIMIT $2
"""  # noqa: S608
"""Jobs whose cancel was requested in the pool that they left meanwhile."""

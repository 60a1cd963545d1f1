"""The query of shares: what tenants hold, wait for and used of late, and the GPUs of each pool."""

from __future__ import annotations

POOL_GPUS = """
SELECT p.pool, COALESCE(sum(n.gpus) FILTER (WHERE n.alive), 0)::bigint AS gpus
FROM pool p LEFT JOIN node n ON n.partition = p.partition
WHERE p.deleted_at = 0 AND ($1::text IS NULL OR p.pool = $1) GROUP BY p.pool ORDER BY p.pool
"""

HALF_LIVES = 30
"""Use that is older counts as nothing: less than 10^-9 of it is left."""

SHARES = """
WITH pools AS MATERIALIZED (
  SELECT pool, partition,
         COALESCE((settings::json ->> 'half_life_s')::float8, 604800) * 1000
             / GREATEST(time_scale, 1e-9) AS half_life_ms
  FROM pool WHERE deleted_at = 0 AND ($2::text IS NULL OR pool = $2)
), held AS (
  SELECT b.partition, b.tenant,
         sum(a.gpus) FILTER (WHERE b.phase IN ('placed', 'running', 'stopping')) AS used_gpus,
         sum(a.gpus) FILTER (WHERE b.phase IN ('waiting', 'backoff')) AS waiting_gpus,
         sum(a.gpus * ($3::float8 - b.placed_at))
           FILTER (WHERE b.phase IN ('placed', 'running', 'stopping')) AS running_ms
  FROM job_placement b JOIN job_admission a USING (job_id)
  WHERE b.phase NOT IN ('succeeded', 'failed', 'cancelled')
    AND ($1::text IS NULL OR b.tenant = $1) AND b.partition IN (SELECT partition FROM pools)
  GROUP BY b.partition, b.tenant
), past AS (
  SELECT u.partition, u.tenant,
         sum(u.gpu_ms * power(0.5::float8,
             LEAST($4::float8, GREATEST($3::float8 - u.day_at, 0) / p.half_life_ms))) AS ended_ms
  FROM pools p JOIN job_usage u ON u.partition = p.partition
    AND u.day_at >= GREATEST($3::float8 - $4::float8 * p.half_life_ms, 0)::bigint
  WHERE $1::text IS NULL OR u.tenant = $1
  GROUP BY u.partition, u.tenant
)
SELECT p.pool, t.tenant, q.guaranteed_gpus, q.borrow_gpus,
       COALESCE(h.used_gpus, 0)::float8 AS used_gpus,
       COALESCE(h.waiting_gpus, 0)::float8 AS waiting_gpus,
       ((COALESCE(h.running_ms, 0) + COALESCE(o.ended_ms, 0)) / 3600000)::float8
         AS decayed_gpu_hours
FROM pools p CROSS JOIN tenant t
LEFT JOIN quota q ON q.partition = p.partition AND q.tenant = t.tenant
LEFT JOIN held h ON h.partition = p.partition AND h.tenant = t.tenant
LEFT JOIN past o ON o.partition = p.partition AND o.tenant = t.tenant
WHERE $1::text IS NULL OR t.tenant = $1
ORDER BY p.pool, t.tenant
"""
"""`$1` is the tenant, `$2` the pool, NULL selects every one; `$3` is now, ms, and `$4` are
`HALF_LIVES`. An ended attempt decays from the begin of its day, with the half-life of the pool's
fair share."""

"""The query of what users use; `$1` is the tenant, NULL selects every tenant."""

from __future__ import annotations

from services.gateway.reads.job_queries import ENDED

FIGURES = ("open_jobs", "running", "gpus", "gpu_ms")

USE = f"""
WITH open AS (
  SELECT job_id, phase IN ('placed', 'running', 'stopping') AS runs FROM job_placement
  WHERE ($1::text IS NULL OR tenant = $1) AND phase NOT IN {ENDED}
  UNION ALL
  SELECT job_id, false FROM job_admission
  WHERE ($1::text IS NULL OR tenant = $1) AND state = 'deferred'
), now AS (
  SELECT a.tenant, a.user_id, count(*) AS open_jobs, count(*) FILTER (WHERE open.runs) AS running,
         COALESCE(sum(a.gpus) FILTER (WHERE open.runs), 0)::float8 AS gpus
  FROM open JOIN job_admission a USING (job_id) GROUP BY a.tenant, a.user_id
), past AS (
  SELECT tenant, user_id, sum(gpu_ms)::bigint AS gpu_ms FROM job_usage
  WHERE $1::text IS NULL OR tenant = $1 GROUP BY tenant, user_id
)
SELECT tenant, user_id AS "user", COALESCE(open_jobs, 0) AS open_jobs,
       COALESCE(running, 0) AS running, COALESCE(gpus, 0)::float8 AS gpus,
       COALESCE(gpu_ms, 0) AS gpu_ms
FROM now FULL JOIN past USING (tenant, user_id)
"""  # noqa: S608
"""Open jobs that placement has and those deferred, the GPUs of those that run, and the GPU time of
attempts that have ended."""

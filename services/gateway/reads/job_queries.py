"""Queries of lists and counts of jobs; `$1` is the tenant, NULL selects every tenant."""

from __future__ import annotations

JOB_COLUMNS = """
    j.job_id, p.pool, j.tenant, j.name, j.user_id, j.priority_class, j.workers, j.gpus,
    j.array_index, j.phase, j.reason, j.detail, j.attempt, j.exit_code, j.submitted_at,
    j.waiting_since, j.placed_at, j.started_at, j.ended_at, j.cancel_requested_at,
    j.short_gpus, j.preemptions, j.moves, j.gpu_ms, j.ran_ms, j.nodes,
    j.failure, j.backend,
    j.checkpointed_at, j.checkpoint_step,
    j.progressed_at, j.progress_step, j.progress_total, j.expected_end_at
"""

AFTER = "chr(1114111)"
"""The last character: what begins with a text is below the text with it, in the order of bytes."""


def begins(column: str, prefix: str) -> str:
    """Return the condition that a text begins with a prefix; NULL is any.

    It is a range, which row-level security lets an index answer, as it does not `starts_with`.
    """
    text = f'{column} COLLATE "C"'
    return f"({prefix}::text IS NULL OR {text} >= {prefix} AND {text} < {prefix} || {AFTER})"


STAYS_HERE = """
    NOT EXISTS (SELECT FROM job_placement t
                WHERE t.job_id = j.job_id AND t.transferred_to <> 'null')
    AND NOT EXISTS (SELECT FROM job_admission t
                    WHERE t.job_id = j.job_id AND t.transferred_to <> 'null')
"""
"""The condition that a job has not left its pool: what leaves is listed where it goes on."""

JOBS = f"""
SELECT {JOB_COLUMNS} FROM job j LEFT JOIN pool p ON p.partition = j.partition
WHERE ($1::text IS NULL OR j.tenant = $1) AND ($2::text IS NULL OR j.phase = $2)
  AND {STAYS_HERE} AND {begins("j.name", "$3")}
  AND ($4::text IS NULL OR p.pool = $4)
  AND {begins("j.job_id", "($5 || '.')")}
  AND ($6::bigint IS NULL OR (j.submitted_at, j.job_id) < ($6, $7::text))
ORDER BY j.submitted_at DESC, j.job_id DESC LIMIT $8
"""  # noqa: S608
JOBS_OF_ARRAY = JOBS.replace("ORDER BY j.submitted_at", "ORDER BY j.submitted_at + 0")
"""The same without the order of the index by time: the range of ids is the shorter way."""
OPEN_PHASES = ("waiting", "placed", "running", "stopping", "backoff")
ENDED = "('succeeded', 'failed', 'cancelled')"
JOBS_OPEN = JOBS.replace(
    "ORDER BY",
    f"""AND j.job_id IN (
  SELECT o.job_id FROM job_placement o
  WHERE ($1::text IS NULL OR o.tenant = $1) AND o.phase = $2 AND o.phase NOT IN {ENDED}
) ORDER BY""",  # noqa: S608
)
"""The same of one of the phases of open jobs, of which there are few."""

JOB = f"""
SELECT {JOB_COLUMNS}, j.spec, j.partition, j.traceparent, j.transferred_to,
       (SELECT NULLIF(c.principal, '') FROM command c
        WHERE c.of IN (j.job_id, split_part(j.job_id, '.', 1)) AND c.tenant = j.tenant
          AND c.type = 'job.submit.v1' AND c.accepted AND NOT c.duplicate LIMIT 1) AS submitted_by
FROM job j LEFT JOIN pool p ON p.partition = j.partition
WHERE ($1::text IS NULL OR j.tenant = $1) AND j.job_id = $2
"""  # noqa: S608

SUBMISSIONS = f"""
WITH page AS (
  SELECT {JOB_COLUMNS}, j.array_index = 0 AND strpos(j.job_id, '.') > 0 AS is_array
  FROM job j LEFT JOIN pool p ON p.partition = j.partition
  WHERE ($1::text IS NULL OR j.tenant = $1) AND {begins("j.name", "$2")}
    AND {STAYS_HERE}
    AND ($3::text IS NULL OR p.pool = $3)
    AND {begins("j.job_id", "$4")}
    AND (j.array_index IS NULL OR j.array_index = 0 OR strpos(j.job_id, '.') = 0)
    AND ($5::bigint IS NULL OR (j.submitted_at, j.job_id) < ($5, $6::text))
  ORDER BY j.submitted_at DESC, j.job_id DESC LIMIT $7
)
SELECT page.*, a.jobs, GREATEST(a.jobs - a.ended - b.running - b.ended, 0) AS pending,
       b.running, b.succeeded, b.failed, a.ended + b.cancelled AS cancelled
FROM page LEFT JOIN LATERAL (
  SELECT count(*) AS jobs, count(*) FILTER (WHERE state IN ('rejected', 'cancelled')) AS ended
  FROM job_admission a
  WHERE page.is_array AND a.job_id COLLATE "C" > left(page.job_id, -1)
    AND a.job_id COLLATE "C" < left(page.job_id, -2) || '/'
) a ON true LEFT JOIN LATERAL (
  SELECT count(*) FILTER (WHERE phase IN ('placed', 'running', 'stopping')) AS running,
         count(*) FILTER (WHERE phase IN {ENDED}) AS ended,
         count(*) FILTER (WHERE phase = 'succeeded') AS succeeded,
         count(*) FILTER (WHERE phase = 'failed') AS failed,
         count(*) FILTER (WHERE phase = 'cancelled') AS cancelled
  FROM job_placement b
  WHERE page.is_array AND b.job_id COLLATE "C" > left(page.job_id, -1)
    AND b.job_id COLLATE "C" < left(page.job_id, -2) || '/'
) b ON true
ORDER BY page.submitted_at DESC, page.job_id DESC
"""  # noqa: S608
"""Jobs, and of each array the first job beside counts of all that exist; `/` follows the dot.

The counts read an index alone: of admission, which ends jobs that were never placed, and of
placement, which may have read less of them.
"""

LATER = """
SELECT a.job_id, a.partition, a.decided_at FROM job_admission a
WHERE a.tenant = $1 AND a.state = 'admitted'
"""
OPEN_JOBS = f"""
WITH RECURSIVE late AS (
  SELECT newest.* FROM pool CROSS JOIN LATERAL (
    {LATER} AND a.partition = pool.partition
    ORDER BY a.decided_at DESC, a.job_id DESC LIMIT 1
  ) newest
  UNION ALL
  SELECT next.* FROM late CROSS JOIN LATERAL (
    {LATER} AND a.partition = late.partition
      AND (a.decided_at, a.job_id) < (late.decided_at, late.job_id)
    ORDER BY a.decided_at DESC, a.job_id DESC LIMIT 1
  ) next WHERE NOT EXISTS (SELECT FROM job_placement b WHERE b.job_id = late.job_id)
), open AS (
  SELECT job_id, phase FROM job_placement
  WHERE tenant = $1 AND phase NOT IN {ENDED}
  UNION ALL
  SELECT job_id, state FROM job_admission WHERE tenant = $1 AND state = 'deferred'
  UNION ALL
  SELECT job_id, 'admitted' FROM late
  WHERE NOT EXISTS (SELECT FROM job_placement b WHERE b.job_id = late.job_id)
)
SELECT p.pool, count(*) AS jobs, count(*) FILTER (WHERE open.phase = 'running') AS running,
       sum(a.gpus) AS gpus
FROM open JOIN job_admission a USING (job_id) LEFT JOIN pool p ON p.partition = a.partition
GROUP BY p.pool ORDER BY p.pool
"""  # noqa: S608
"""Jobs that placement has, those deferred, and those that it has not read yet: the last admitted
ones of each pool, as it reads them in their order."""

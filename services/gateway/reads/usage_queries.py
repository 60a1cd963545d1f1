"""Queries of what jobs used, by day; `$1` is the tenant, NULL selects every tenant."""

from __future__ import annotations

from typing import Literal

By = Literal["tenant", "user", "pool", "day", "month"]

GROUPS: dict[By, str] = {
    "tenant": "u.tenant",
    "user": 'u.tenant, u.user_id AS "user"',
    "pool": "p.pool",
    "day": "u.day_at",
    "month": "to_char(to_timestamp(u.day_at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM') AS month",
}
"""Columns of a group."""

SUMS = """
       sum(gpu_ms)::bigint AS gpu_ms, sum(starts)::bigint AS starts,
       sum(waited_ms)::bigint AS waited_ms, sum(succeeded)::bigint AS succeeded,
       sum(failed)::bigint AS failed, sum(cancelled)::bigint AS cancelled,
       sum(preempted)::bigint AS preempted,
       sum(cost_millionths)::float8 / 1000000 AS cost
FROM job_usage u LEFT JOIN pool p ON p.partition = u.partition
WHERE ($1::text IS NULL OR u.tenant = $1) AND u.day_at >= $2 AND u.day_at < $3
  AND ($4::text IS NULL OR p.pool = $4) AND ($5::text IS NULL OR u.user_id = $5)
"""


def job_usage_by(by: By) -> str:
    """Return the query of use by this group: the largest first, the latest of times."""
    columns = "1, 2" if by == "user" else "1"
    order = "1 DESC" if by in ("day", "month") else f"sum(gpu_ms) DESC, {columns}"
    return f"SELECT {GROUPS[by]}, {SUMS} GROUP BY {columns} ORDER BY {order} LIMIT $6 OFFSET $7"

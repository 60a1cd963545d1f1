"""Queries of LLM requests and their use; `$1` is the tenant, NULL selects every tenant."""

from __future__ import annotations

from typing import Literal

from services.gateway.reads.database import Row

REQUEST_COLUMNS = """
SELECT request_id, tenant, endpoint, model, application, user_id AS "user", interaction, stage,
       state, outcome, reason, detail, retry_after_s, upstream, prompt_tokens, max_output_tokens,
       output_tokens, cached_tokens, cost, ahead, nullif(wait_s, -1) AS wait_s, waited_ms,
       served_ms, queued_at, started_at, ended_at
FROM llm_request WHERE ($1::text IS NULL OR tenant = $1)
"""

LLM_REQUESTS = f"""{REQUEST_COLUMNS}
  AND ($2::text IS NULL OR endpoint = $2) AND ($3::text IS NULL OR state = $3)
  AND ($4::text IS NULL OR user_id = $4) AND ($5::text IS NULL OR application = $5)
  AND ($6::bigint IS NULL OR (queued_at, request_id) < ($6, $7::text))
ORDER BY queued_at DESC, request_id DESC LIMIT $8
"""

LLM_REQUEST = f"""{REQUEST_COLUMNS}
  AND request_id = $2 AND ($3::text IS NULL OR tenant = $3) ORDER BY queued_at DESC LIMIT 1
"""

By = Literal["tenant", "user", "application", "model", "endpoint", "day", "hour"]

GROUPS: dict[By, str] = {
    "tenant": "tenant",
    "user": 'tenant, user_id AS "user"',
    "application": "tenant, application",
    "model": "model",
    "endpoint": "endpoint",
    "day": "hour_at - hour_at % 86400000 AS day_at",
    "hour": "hour_at",
}
GROUP_COLUMNS: dict[By, int] = {"user": 2, "application": 2}
"""Columns of a group, where it has more than one."""

SUMS = """
       sum(requests)::bigint AS requests, sum(rejected)::bigint AS rejected,
       sum(prompt_tokens)::bigint AS prompt_tokens, sum(output_tokens)::bigint AS output_tokens,
       sum(cached_tokens)::bigint AS cached_tokens, sum(wasted_tokens)::bigint AS wasted_tokens,
       sum(cost) AS cost, sum(estimated_ms)::bigint AS estimated_ms,
       sum(waited_ms)::bigint AS waited_ms, max(longest_wait_ms) AS longest_wait_ms,
       sum(served_ms)::bigint AS served_ms
FROM llm_usage WHERE ($1::text IS NULL OR tenant = $1) AND hour_at >= $2
"""


def usage_by(by: By) -> str:
    """Return the query of use by this group: the largest first, times in their order."""
    columns = ", ".join(str(n) for n in range(1, GROUP_COLUMNS.get(by, 1) + 1))
    order = "1 DESC" if by in ("day", "hour") else f"sum(cost) DESC, 5 DESC, {columns}"
    return f"SELECT {GROUPS[by]}, {SUMS} GROUP BY {columns} ORDER BY {order} LIMIT $3"


LLM_REJECTIONS = """
SELECT tenant, endpoint, reason, sum(rejected)::bigint AS rejected, max(hour_at) AS latest_hour_at
FROM llm_usage WHERE ($1::text IS NULL OR tenant = $1) AND hour_at >= $2 AND rejected > 0
GROUP BY tenant, endpoint, reason ORDER BY rejected DESC, 1, 2, 3 LIMIT $3
"""

LLM_FAIRNESS = """
SELECT endpoint, began_at, span_ms, minutes, tenants, largest_gap, mean_gap FROM llm_fairness
WHERE ($1::text IS NULL OR endpoint = $1) AND began_at >= $2
ORDER BY began_at DESC, endpoint LIMIT $3
"""

HOLDERS = {
    "tenant": "tenant",
    "user": "user_id",
    "application": "application",
    "model": "COALESCE(NULLIF(model, ''), endpoint)",
}
AMOUNTS = {"requests": "1", "tokens": "(prompt_tokens + output_tokens)", "money": "cost"}
WEIGHTS = {
    "window": "CASE WHEN ended_at > $4 - $5::float8 THEN 1 ELSE 0 END",
    "half_life": "power(0.5, GREATEST($4 - ended_at, 0) / $5::float8)",
}
SINCE_START = """
SELECT tenant, holder, sum(amount)::float8 AS used FROM (
    SELECT tenant, {holder} AS holder, {hour_amount} AS amount FROM llm_usage
    WHERE ($1::text IS NULL OR tenant = $1) AND endpoint = $2 AND rejected = 0
      AND hour_at >= $3
    UNION ALL
    SELECT tenant, {holder}, {amount} FROM llm_request
    WHERE ($1::text IS NULL OR tenant = $1) AND endpoint = $2 AND state = 'finished'
      AND ended_at > $3 AND ended_at < ceil($3 / 3600000.0) * 3600000
) used GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1000
"""
"""Whole hours are summed; of the hour in which the budget was set, the requests after that."""
REMEMBERED = """
SELECT tenant, {holder} AS holder, sum({amount} * {weight})::float8 AS used FROM llm_request
WHERE ($1::text IS NULL OR tenant = $1) AND endpoint = $2 AND state = 'finished'
  AND ended_at > $3 AND ended_at > $4 - 20 * $5::float8
GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1000
"""
"""After 20 half-lives a millionth is left."""


HELD_AMOUNTS = {
    "requests": "1",
    "tokens": "(prompt_tokens + max_output_tokens)",
    "money": "($3::float8 + $4::float8 * prompt_tokens + $5::float8 * max_output_tokens)",
}
HELD = """
SELECT tenant, {holder} AS holder, sum({amount})::float8 AS held FROM llm_request
WHERE ($1::text IS NULL OR tenant = $1) AND endpoint = $2 AND state IN ('queued', 'running')
GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1000
"""


def held_of_budget(budget: Row) -> str:
    """Return the query of what open requests hold of a budget, each its longest answer.

    That of money has the prices of a request and of a prompt and an output token for values.
    """
    holder, amount = HOLDERS[str(budget["holder"])], HELD_AMOUNTS[str(budget["unit"])]
    return HELD.format(holder=holder, amount=amount)


def use_of_budget(budget: Row) -> str:
    """Return the query of what each holder of a budget has used of it since it was set, at $3."""
    holder, unit = HOLDERS[str(budget["holder"])], str(budget["unit"])
    if budget["memory"] == "forever":
        hour_amount = "requests" if unit == "requests" else AMOUNTS[unit]
        return SINCE_START.format(holder=holder, hour_amount=hour_amount, amount=AMOUNTS[unit])
    weight = WEIGHTS[str(budget["memory"])]
    return REMEMBERED.format(holder=holder, amount=AMOUNTS[unit], weight=weight)

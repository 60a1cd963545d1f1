"""`llm_usage`: what users, applications and models used in each hour, and what was rejected.

The events of ends name the request alone: who sent it and to which model are in its row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from asyncpg import Connection

from shared.projections.ledger_events import LedgerEvent
from shared.projections.llm import LLM_REQUEST, LlmRequestRow, fold_request
from shared.projections.table import BigInt, RowTable

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
KEPT_REQUESTS_MS = 30 * DAY_MS
KEPT_HOURS_MS = 90 * DAY_MS
"""Older rows are dropped when a lane's next hour begins; `llm_tenant` keeps the sums."""
ENDS = ("llm.finished.v1", "llm.rejected.v1")
STEPS = ("llm.queued.v1", "llm.started.v1", *ENDS)
DROP_REQUESTS = "DELETE FROM llm_request WHERE partition = $1 AND ended_at > 0 AND ended_at < $2"
DROP_HOURS = "DELETE FROM llm_usage WHERE partition = $1 AND hour_at < $2"


@dataclass(slots=True)
class LlmUsageRow:
    """One hour of one sender on one model; of rejected requests, those of one reason."""

    usage_id: str
    partition: int
    hour_at: BigInt
    tenant: str = ""
    endpoint: str = ""
    model: str = ""
    application: str = ""
    user_id: str = ""
    reason: str = ""
    """Why requests were rejected; empty in rows of those that were served."""
    requests: BigInt = 0
    rejected: BigInt = 0
    prompt_tokens: BigInt = 0
    output_tokens: BigInt = 0
    cached_tokens: BigInt = 0
    wasted_tokens: BigInt = 0
    cost: float = 0.0
    estimated_ms: BigInt = 0
    """Sum of the waits that were estimated when the requests were queued."""
    waited_ms: BigInt = 0
    longest_wait_ms: BigInt = 0
    served_ms: BigInt = 0


LLM_USAGE = RowTable("llm_usage", LlmUsageRow, "usage_id")


def new_usage(request: LlmRequestRow) -> LlmUsageRow:
    """Return the empty row to which a request that has ended belongs."""
    hour_at = request.ended_at - request.ended_at % HOUR_MS
    names = (
        request.tenant,
        request.endpoint,
        request.model or request.endpoint,
        request.application,
        request.user_id,
        request.reason if request.state == "rejected" else "",
    )
    key = json.dumps([request.partition, hour_at, *names], ensure_ascii=False)
    return LlmUsageRow(key, request.partition, hour_at, *names)


def add(row: LlmUsageRow, request: LlmRequestRow) -> None:
    """Add a request that has ended; a rejected one has used nothing."""
    if request.state == "rejected":
        row.rejected += 1
        return
    row.requests += 1
    row.prompt_tokens += request.prompt_tokens
    row.output_tokens += request.output_tokens
    row.cached_tokens += request.cached_tokens
    row.wasted_tokens += 0 if request.outcome == "completed" else request.output_tokens
    row.cost += request.cost
    row.estimated_ms += round(1000 * max(request.wait_s, 0.0))
    row.waited_ms += request.waited_ms
    row.longest_wait_ms = max(row.longest_wait_ms, request.waited_ms)
    row.served_ms += request.served_ms


async def store_usage(conn: Connection, events: list[LedgerEvent]) -> dict[int, int]:
    """Add the requests that these events end, before the events change the rows of the requests.

    Return the hours that begin with them, by lane.
    """
    work = [event for event in events if event.ledger == "throttle" and event.type in STEPS]
    if not any(event.type in ENDS for event in work):
        return {}
    requests = await LLM_REQUEST.load(conn, {request_key(event) for event in work})
    ended = list(ended_requests(requests, work))
    rows = await LLM_USAGE.load(conn, {new_usage(request).usage_id for request in ended})
    begun = dict[int, int]()
    for request in ended:
        new = new_usage(request)
        if new.usage_id not in rows:
            begun[new.partition] = new.hour_at
        add(rows.setdefault(new.usage_id, new), request)
    await LLM_USAGE.store(conn, rows.values())
    return begun


def ended_requests(
    requests: dict[str, LlmRequestRow], work: list[LedgerEvent]
) -> Iterator[LlmRequestRow]:
    """Yield each request as it ends; one that was rejected may be sent again with its id."""
    for event in work:
        key = request_key(event)
        if key not in requests:
            requests[key] = LlmRequestRow(key, event.partition, event.data["request_id"])
        fold_request(requests[key], event)
        if event.type in ENDS:
            yield replace(requests[key])


def request_key(event: LedgerEvent) -> str:
    return f"{event.partition}/{event.data['tenant']}/{event.data['request_id']}"


async def drop_old(conn: Connection, begun: dict[int, int]) -> None:
    """Drop what each lane keeps no longer in the hour that begins."""
    for partition, hour_at in begun.items():
        await conn.execute(DROP_REQUESTS, partition, hour_at - KEPT_REQUESTS_MS)
        await conn.execute(DROP_HOURS, partition, hour_at - KEPT_HOURS_MS)

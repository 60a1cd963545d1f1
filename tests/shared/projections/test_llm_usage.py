"""Use by the hour: whose requests ended in it, on what, and what was rejected why."""

from __future__ import annotations

from collections.abc import Sequence

from asyncpg import Record

from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.base import Event
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
)
from shared.projections.database import connect
from shared.projections.llm import LlmRequestRow
from shared.projections.llm_usage import (
    HOUR_MS,
    KEPT_HOURS_MS,
    KEPT_REQUESTS_MS,
    add,
    ended_requests,
    new_usage,
)
from tests.shared.ledger_events import AT, ledger_event
from tests.shared.projections.history import project_all

NOON = AT - AT % HOUR_MS
REJECTED = LlmRequestRejected(request_id="r", tenant="red", reason="queue_full")


def queued(request_id: str = "r", **fields: object) -> LlmRequestQueued:
    given = {
        "request_id": request_id,
        "tenant": "red",
        "endpoint": "chat",
        "user": "u",
        "wait_s": 2,
    }
    return LlmRequestQueued.model_validate(
        {**given, "prompt_tokens": 10, "max_output_tokens": 50, "wait_s": 2, **fields}
    )


def started(request_id: str = "r") -> LlmRequestStarted:
    return LlmRequestStarted(request_id=request_id, tenant="red", waited_ms=900)


def finished(request_id: str = "r", **fields: object) -> LlmRequestFinished:
    given = {"request_id": request_id, "tenant": "red", "prompt_tokens": 10, "output_tokens": 7}
    return LlmRequestFinished.model_validate({**given, "cost": 0.5, **fields})


def ends_of(*messages: Event) -> list[LlmRequestRow]:
    events = [ledger_event("throttle", message) for message in messages]
    return list(ended_requests({}, events))


def test_a_request_is_added_to_the_hour_of_its_end() -> None:
    (request,) = ends_of(queued(model="chat-de"), started(), finished(outcome="failed"))
    row = new_usage(request)
    assert (row.hour_at, row.tenant, row.user_id) == (NOON, "red", "u")
    assert (row.endpoint, row.model, row.reason) == ("chat", "chat-de", "")
    add(row, request)
    add(row, request)
    assert (row.requests, row.rejected, row.wasted_tokens, row.cost) == (2, 0, 14, 1.0)
    assert (row.estimated_ms, row.waited_ms, row.longest_wait_ms) == (4000, 1800, 900)


def test_an_endpoint_that_was_asked_for_by_its_name_is_the_model() -> None:
    (request,) = ends_of(queued(), started(), finished())
    assert new_usage(request).model == "chat"


def test_a_rejected_request_is_counted_by_its_reason_and_used_nothing() -> None:
    (request,) = ends_of(queued(), REJECTED)
    row = new_usage(request)
    add(row, request)
    assert (row.reason, row.requests, row.rejected) == ("queue_full", 0, 1)
    assert (row.prompt_tokens, row.waited_ms, row.cost) == (0, 0, 0.0)


def test_a_request_that_is_sent_again_ends_twice() -> None:
    ends = ends_of(REJECTED, queued(), started(), finished())
    assert [end.state for end in ends] == ["rejected", "finished"]


def test_senders_with_odd_names_never_share_a_row() -> None:
    names = [("a/b", "c"), ("a", "b/c"), ('a","b', "c")]
    ids = {
        new_usage(*ends_of(queued(application=application, user=user), finished())).usage_id
        for application, user in names
    }
    assert len(ids) == 3


async def rows_of(dsn: str, sql: str) -> Sequence[Record]:
    conn = await connect(dsn)
    await conn.execute("SET search_path TO berth")
    rows: Sequence[Record] = await conn.fetch(sql)
    await conn.close()
    return rows


async def test_requests_and_hours_are_dropped_when_they_are_old(database: str) -> None:
    broker = MemoryBroker()
    pen = LedgerWriter(broker, "throttle")
    pen.write([queued("old"), started("old"), finished("old")])
    pen.write([queued("open")])
    pen.at += KEPT_REQUESTS_MS + HOUR_MS
    pen.write([queued("mid"), started("mid"), finished("mid")])
    pen.at += KEPT_HOURS_MS - KEPT_REQUESTS_MS
    pen.write([queued("new"), started("new"), finished("new")])
    await project_all(database, broker)
    requests = await rows_of(database, "SELECT request_id FROM llm_request ORDER BY 1")
    assert [row["request_id"] for row in requests] == ["new", "open"]
    hours = await rows_of(database, "SELECT hour_at, requests FROM llm_usage ORDER BY 1")
    assert [row["requests"] for row in hours] == [1, 1]
    [account] = await rows_of(database, "SELECT requests, cost FROM llm_tenant")
    assert (account["requests"], account["cost"]) == (3, 1.5)

"""The gap of service among tenants that waited through a minute."""

from __future__ import annotations

from collections.abc import Sequence

from asyncpg import Record

from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
    TokensCharged,
    TokensMade,
)
from shared.projections.database import connect
from shared.projections.llm_fairness import KEPT_MINUTES_MS, MINUTE_MS, FairnessFold, LlmFairnessRow
from shared.projections.llm_usage import HOUR_MS, KEPT_HOURS_MS
from tests.shared.ledger_events import AT, ledger_event
from tests.shared.projections.history import project_all

MINUTE = AT - AT % MINUTE_MS
Timed = tuple[float, Event]
"""Minutes after the first one, and an event."""


def queued(name: str, tenant: str = "red", prompt: int = 10) -> LlmRequestQueued:
    counts = {"prompt_tokens": prompt, "max_output_tokens": 90}
    return LlmRequestQueued(request_id=name, tenant=tenant, endpoint="chat", **counts)


def started(name: str, tenant: str = "red") -> LlmRequestStarted:
    return LlmRequestStarted(request_id=name, tenant=tenant)


def made(name: str, tokens: int) -> TokensCharged:
    return TokensCharged(endpoint="chat", made=(TokensMade(request_id=name, tokens=tokens),))


def finished(name: str, tenant: str, output: int, prompt: int = 10) -> LlmRequestFinished:
    return LlmRequestFinished(
        request_id=name, tenant=tenant, prompt_tokens=prompt, output_tokens=output
    )


def folded(*events: Timed) -> FairnessFold:
    fold = FairnessFold()
    for minutes, event in events:
        fold.fold(ledger_event("throttle", event, at=MINUTE + round(minutes * MINUTE_MS)))
    return fold


def gaps(*events: Timed) -> list[tuple[int, float, int]]:
    """Return minute, gap and tenants of each minute that has a gap."""
    rows = folded(*events).minutes
    return [((row.began_at - MINUTE) // MINUTE_MS, row.largest_gap, row.tenants) for row in rows]


BACKLOG: list[Timed] = [
    (0.5, queued(f"{tenant}{n}", tenant)) for tenant in ("red", "blue") for n in range(3)
]
LATER: Timed = (2.0, queued("late", "green"))


def test_the_gap_is_of_a_minute_through_which_two_tenants_waited() -> None:
    served = [(1.1, started("red0")), (1.2, started("red1")), (1.3, started("blue0", "blue"))]
    assert gaps(*BACKLOG, *served, LATER) == [(1, 10.0, 2)]


def test_output_counts_twice_as_it_is_made_and_the_rest_at_the_end() -> None:
    served = [(0.6, started("red0")), (1.1, made("red0", 7)), (1.2, made("unknown", 9))]
    assert gaps(*BACKLOG, *served, LATER) == [(1, 14.0, 2)]
    ended = (1.5, finished("red0", "red", 9, prompt=13))
    assert gaps(*BACKLOG, *served, ended, LATER) == [(1, 3.0 + 18.0, 2)]


def test_services_are_by_weight() -> None:
    heavy = (0.1, TenantNoted(tenant="red", weight=2.0))
    assert gaps(heavy, *BACKLOG, (1.1, started("red0")), LATER) == [(1, 5.0, 2)]


def test_a_tenant_that_did_not_wait_for_a_moment_is_not_compared() -> None:
    all_started = [(1.1, started(f"blue{n}", "blue")) for n in range(3)]
    assert gaps(*BACKLOG, *all_started, (1.2, queued("blue9", "blue")), LATER) == []
    left = LlmRequestRejected(request_id="blue0", tenant="blue", reason="cancelled")
    assert gaps(*BACKLOG, (1.1, left), LATER) == [(1, 0.0, 2)]


def test_a_rejection_on_arrival_is_not_one_of_the_waiting_request_of_that_id() -> None:
    refused = LlmRequestRejected(request_id="blue0", tenant="green", reason="not_allowed")
    fold = folded(*BACKLOG, (1.1, refused))
    assert fold.backlogs["0/blue"].waiting == 3
    assert not fold.ended


def test_a_minute_without_any_event_has_no_gap() -> None:
    assert gaps(*BACKLOG, (1.1, started("red0")), (9.0, queued("late", "green"))) == [(1, 10.0, 2)]


def test_lanes_are_apart() -> None:
    fold = FairnessFold()
    for partition in (0, 1):
        event = ledger_event("throttle", queued("r"), partition=partition)
        fold.fold(event)
    assert [line.waiting for line in fold.backlogs.values()] == [1, 1]


async def rows_of(dsn: str, sql: str) -> Sequence[Record]:
    conn = await connect(dsn)
    rows: Sequence[Record] = await conn.fetch(sql)
    await conn.close()
    return rows


async def test_open_requests_are_kept_and_ended_ones_are_not(database: str) -> None:
    broker = MemoryBroker()
    pen = LedgerWriter(broker, "throttle")
    pen.write([queued("a"), queued("b"), started("a")])
    pen.write([made("a", 4), queued("c"), started("c"), finished("c", "red", 3)])
    await project_all(database, broker)
    rows = await rows_of(database, "SELECT * FROM llm_open ORDER BY request_id")
    assert [(row["request_id"], row["is_running"], row["made_tokens"]) for row in rows] == [
        ("a", True, 4),
        ("b", False, 0),
    ]
    (backlog,) = await rows_of(database, "SELECT * FROM llm_backlog")
    assert (backlog["waiting"], backlog["units"]) == (1, 10 + 8 + 10 + 6)


async def test_minutes_become_hours_which_are_dropped(database: str) -> None:
    broker = MemoryBroker()
    pen = LedgerWriter(broker, "throttle")
    pen.write([event for _, event in BACKLOG], at=MINUTE)
    for minute in (1, 2, 3):
        pen.write([started(f"red{minute - 1}"), queued(f"red-{minute}")], at=at(minute))
    pen.write([queued("last")], at=at(4))
    ended = [started("last"), finished("last", "red", 1)]
    pen.write(ended, at=MINUTE + KEPT_MINUTES_MS + 2 * HOUR_MS)
    await project_all(database, broker)
    (row,) = await rows_of(database, "SELECT * FROM llm_fairness WHERE span_ms > 60000")
    assert row["began_at"] == MINUTE - MINUTE % HOUR_MS
    assert (row["minutes"], row["tenants"]) == (5, 2)
    assert (row["largest_gap"], row["mean_gap"]) == (10.0, 6.0)
    later = [queued("z"), started("z"), finished("z", "red", 1)]
    pen.write(later, at=MINUTE + KEPT_HOURS_MS + 2 * HOUR_MS)
    await project_all(database, broker)
    left = await rows_of(database, "SELECT began_at FROM llm_fairness")
    assert all(kept["began_at"] > row["began_at"] for kept in left)


def at(minute: int) -> int:
    return MINUTE + minute * MINUTE_MS + 1


def test_a_row_names_its_endpoint() -> None:
    (row,) = folded(*BACKLOG, (1.1, started("red0")), LATER).minutes
    assert isinstance(row, LlmFairnessRow)
    assert (row.endpoint, row.minutes, row.fairness_id) == ("chat", 1, f"0/chat/{row.began_at}")

"""Use by user and day: parts of attempts that cross midnight, prices as they were, no sum twice."""

from __future__ import annotations

from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.attempts import JobPreempted, JobRequeued, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.placement import Allocation, JobEnqueued, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.projections.database import connect
from shared.projections.job_usage import LanePriceRow, Prices, fold_price, split_by_day
from shared.projections.llm_usage import DAY_MS, HOUR_MS
from tests.shared.ledger_events import AT, ledger_event
from tests.shared.projections.history import SPEC, project_all

MIDNIGHT = AT - AT % DAY_MS + DAY_MS
OF_RED = {"job_id": "j1", "tenant": "red"}
HELD = Allocation(rank=0, node_id="n1", gpus=tuple(range(8)), cpus=1, mem_gib=1)


def priced(price: float) -> PoolConfigured:
    return PoolConfigured(pool="p", partition=0, gpu_hour_price=price)


def test_an_amount_is_split_by_the_days_between_two_times_without_a_rest() -> None:
    begin, end = MIDNIGHT - HOUR_MS, MIDNIGHT + DAY_MS + 2 * HOUR_MS
    parts = list(split_by_day(begin, end, 1001))
    assert [(at // DAY_MS - begin // DAY_MS, part) for at, part in parts] == [
        (0, 37),
        (1, 889),
        (2, 75),
    ]
    assert list(split_by_day(begin, MIDNIGHT, 7)) == [(begin, 7)]
    assert list(split_by_day(begin, begin, 7)) == [(begin, 7)]


def test_a_price_counts_from_its_record_on_and_on_its_lane() -> None:
    changes = [ledger_event("placement", priced(3.0), seq=5)]
    prices = Prices({0: 2.0, 1: 9.0}, changes)
    of = [ledger_event("placement", priced(0.0), seq=seq) for seq in (4, 5, 6)]
    assert [prices.at(event) for event in of] == [2.0, 3.0, 3.0]
    assert prices.at(ledger_event("placement", priced(0.0), partition=1)) == 9.0
    assert prices.at(ledger_event("placement", priced(0.0), partition=2)) == 0.0
    row = LanePriceRow("0", 0)
    fold_price(row, changes[0])
    assert row.gpu_hour_price == 3.0


async def test_what_a_job_used_is_its_users_on_the_days_of_its_attempts(database: str) -> None:
    broker = MemoryBroker()
    pen = LedgerWriter(broker, "placement")
    spec = SPEC.model_copy(update={"user": "ann"})
    placed = JobPlaced(**OF_RED, attempt=1, allocations=(HELD,), waited_ms=1, policy="fcfs")
    steps: list[tuple[int, Event]] = [
        (-2 * HOUR_MS, priced(2.0)),
        (-2 * HOUR_MS, JobEnqueued(**OF_RED, submitted_at=1, spec=spec)),
        (-HOUR_MS, placed),
        (HOUR_MS, JobPreempted(**OF_RED, attempt=1, reason="higher_class")),
        (HOUR_MS, JobRequeued(**OF_RED, attempt=2, reason="higher_class", gpu_s=8 * 7200)),
        (HOUR_MS, priced(4.0)),
        (HOUR_MS, placed.model_copy(update={"attempt": 2})),
        (2 * HOUR_MS, JobSucceeded(**OF_RED, attempt=2, gpu_s=8 * 3600)),
    ]
    for after_ms, event in steps:
        pen.write([event], at=MIDNIGHT + after_ms)
    await project_all(database, broker)
    conn = await connect(database)
    rows = await conn.fetch(
        "SELECT day_at, tenant, user_id, gpu_ms / 3600000 AS hours, starts, waited_ms, preempted,"
        " succeeded, cost_millionths / 1000000 AS cost FROM job_usage ORDER BY day_at"
    )
    await conn.close()
    assert [tuple(row) for row in rows] == [
        (MIDNIGHT - DAY_MS, "red", "ann", 8, 1, HOUR_MS, 0, 0, 16),
        (MIDNIGHT, "red", "ann", 16, 1, 0, 1, 1, 16 + 32),
    ]

"""`job_usage`: what each user's jobs used on each day of a lane, in UTC.

The events of a job's end name the job alone: its user and the time of its placement are in its
row, which is folded anyway. A start counts, with the wait before it, when the job is placed; GPU
hours and cost count when the attempt has ended, on the days on which it held its GPUs. All columns
are whole numbers: sums do not depend on how events come in batches.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from asyncpg import Connection

from shared.projections.jobs import PlacementRow, used_gpu_ms
from shared.projections.ledger_events import LedgerEvent
from shared.projections.llm_usage import DAY_MS, HOUR_MS
from shared.projections.table import BigInt, RowTable

MILLION = 1_000_000
PRICED = ("placement", "pool.configured.v1")
"""Ledger and type of the event that sets a price; that ledger's order decides which one counts."""
Key = tuple[int, int, str, str]
"""Lane, day, tenant and user of a row."""
COUNTED = {
    "job.succeeded.v1": "succeeded",
    "job.failed.v1": "failed",
    "job.cancelled.v1": "cancelled",
    "job.preempted.v1": "preempted",
}
"""Event type to the column that counts it."""


@dataclass(slots=True)
class JobUsageRow:
    """One day of the jobs of one user of a tenant; whole milliseconds, so sums are exact."""

    usage_id: str
    partition: int
    day_at: BigInt
    tenant: str = ""
    user_id: str = ""
    gpu_ms: BigInt = 0
    starts: BigInt = 0
    waited_ms: BigInt = 0
    """Sum of the waits before the starts, from the entry into the queue to the placement."""
    succeeded: BigInt = 0
    failed: BigInt = 0
    cancelled: BigInt = 0
    preempted: BigInt = 0
    cost_millionths: BigInt = 0
    """Of the unit of money, at the prices that the pool had when the attempts ended."""


@dataclass(slots=True)
class LanePriceRow:
    """The price of a pool since its last change of settings."""

    lane: str
    partition: int
    gpu_hour_price: float = 0.0


JOB_USAGE = RowTable("job_usage", JobUsageRow, "usage_id")
LANE_PRICE = RowTable("lane_price", LanePriceRow, "lane")


def fold_price(row: LanePriceRow, event: LedgerEvent) -> None:
    row.gpu_hour_price = price_of(event)


def price_of(event: LedgerEvent) -> float:
    """Return the price that the settings of a pool name; an earlier event names none."""
    price: float = event.data.get("gpu_hour_price", 0.0)
    return price


class Prices:
    """Prices of GPU-hours by lane, as they change in a batch of events."""

    def __init__(self, before: Mapping[int, float], events: Sequence[LedgerEvent]) -> None:
        self._before = before
        self._changes = defaultdict[int, list[tuple[int, float]]](list)
        for event in events:
            if (event.ledger, event.type) == PRICED:
                self._changes[event.partition].append((event.seq, price_of(event)))

    def at(self, event: LedgerEvent) -> float:
        """Return the price on the event's lane when it was recorded."""
        price = self._before.get(event.partition, 0.0)
        for seq, changed in self._changes[event.partition]:
            if seq <= event.seq:
                price = changed
        return price


async def read_prices(conn: Connection, events: Sequence[LedgerEvent]) -> Prices:
    """Read the prices before these events, if any of them ends an attempt."""
    lanes = {str(e.partition) for e in events if e.data.get("gpu_s") and e.ledger == "placement"}
    rows = await LANE_PRICE.load(conn, lanes) if lanes else {}
    return Prices({row.partition: row.gpu_hour_price for row in rows.values()}, events)


class UsageChanges:
    """Sums that a batch of events adds to each column of each row."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._sums = defaultdict[Key, dict[str, int]](lambda: defaultdict(int))

    def note(self, row: PlacementRow, event: LedgerEvent) -> None:
        """Add what an event means for its job, whose row has not folded the event yet."""
        if event.type == "job.placed.v1":
            self._add(row, event.at, "starts", 1)
            if row.waiting_since:
                self._add(row, event.at, "waited_ms", max(0, event.at - row.waiting_since))
        if gpu_ms := used_gpu_ms(event.data):
            begin = row.placed_at or event.at
            cost = round(gpu_ms * self._prices.at(event) * MILLION / HOUR_MS)
            for sum_of, amount in (("gpu_ms", gpu_ms), ("cost_millionths", cost)):
                for at, part in split_by_day(begin, event.at, amount):
                    self._add(row, at, sum_of, part)
        column = COUNTED.get(event.type)
        if column and event.data.get("transferred_to") is None:
            self._add(row, event.at, column, 1)

    def _add(self, row: PlacementRow, at: int, column: str, amount: int) -> None:
        self._sums[row.partition, at - at % DAY_MS, row.tenant, row.user_id][column] += amount

    async def store(self, conn: Connection) -> None:
        if not self._sums:
            return
        keys = {json.dumps(key, ensure_ascii=False): key for key in self._sums}
        rows = await JOB_USAGE.load(conn, keys)
        for usage_id, key in keys.items():
            row = rows.setdefault(usage_id, JobUsageRow(usage_id, *key))
            for column, amount in self._sums[key].items():
                setattr(row, column, getattr(row, column) + amount)
        await JOB_USAGE.store(conn, rows.values())


def split_by_day(begin: int, end: int, amount: int) -> Iterator[tuple[int, int]]:
    """Yield the days between two times, ms, each with its part of an amount; none is lost."""
    at, left = begin, amount
    while (next_day := at - at % DAY_MS + DAY_MS) < end:
        part = amount * (next_day - at) // (end - begin)
        yield at, part
        at, left = next_day, left - part
    yield at, left

"""A pool's ledger is read from a snapshot on, and only consumed events are decoded."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.executor.pool_ledger import LEDGER, PoolLedger
from shared.bus.folds.snapshots import Snapshots
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.base import Event
from shared.contracts.nodes import NodeCordoned, NodeLost
from shared.ledger.decider import Fact
from shared.telemetry.metrics import Metrics
from tests.chaos import virtual_time

LOST = NodeLost(node_id="n1", incarnation="i1", reason="left")
CORDONED = NodeCordoned(node_id="n1", reason="repair")


class Pool:
    """A ledger on a broker, and readers of it, as an executor starts them."""

    def __init__(self, folder: Path) -> None:
        self.broker = MemoryBroker()
        self.writer = LedgerWriter(self.broker, LEDGER)
        self.snapshots: Snapshots[list[int]] = Snapshots(folder, LEDGER, 0, "seqs-1")
        self.metrics = Metrics("executor")

    def write(self, *events: Event) -> None:
        self.writer.write(events)

    def ledger(self) -> PoolLedger[list[int]]:
        return PoolLedger(MemoryLog(self.broker), 0, self.snapshots, self.metrics)

    def ignored(self, reason: str) -> float | None:
        labels = {"reason": reason}
        return self.metrics.registry.get_sample_value("berth_ignored_records_total", labels)


async def read(ledger: PoolLedger[list[int]]) -> list[Fact]:
    """Return the facts up to the ledger's present end."""
    facts: list[Fact] = []
    await ledger.start()
    while not ledger.caught_up:
        for accepted in await ledger.poll():
            facts += ledger.facts(accepted.record, accepted.record.events())
    return facts


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return Pool(tmp_path)


async def test_facts_have_the_place_of_their_event_in_the_ledger(pool: Pool) -> None:
    pool.write(CORDONED, LOST)
    (fact,) = await read(pool.ledger())
    assert (fact.event, fact.place, fact.at) == (LOST, "0/1/1", pool.writer.at)


async def test_records_that_no_reader_accepts_are_counted(pool: Pool) -> None:
    pool.writer.scribble(b"no record")
    pool.write(LOST)
    ledger = pool.ledger()
    assert len(await read(ledger)) == 1
    assert pool.ignored("reader_rule") == 1
    assert ledger.next == await ledger.end() == 2


async def test_a_consumed_type_of_a_later_version_is_counted_and_skipped(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CORDONED.__class__, "TYPE", "node.lost.v99")
    pool.write(CORDONED, LOST)
    assert [fact.event for fact in await read(pool.ledger())] == [LOST]
    assert pool.ignored("unknown_type") == 1


async def test_a_restart_goes_on_behind_its_snapshot(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.executor.pool_ledger.SNAPSHOT_RECORDS", 2)
    pool.write(LOST)
    pool.write(LOST)
    first = pool.ledger()
    assert first.restore() is None
    await first.store_snapshot([fact.seq for fact in await read(first)])
    pool.write(LOST)
    second = pool.ledger()
    assert second.restore() == [1, 2]
    assert [fact.seq for fact in await read(second)] == [3]


async def test_a_snapshot_that_would_save_a_few_records_alone_is_not_stored(pool: Pool) -> None:
    pool.write(LOST)
    ledger = pool.ledger()
    await read(ledger)
    await ledger.store_snapshot([1])
    assert pool.snapshots.load() is None


@pytest.mark.parametrize("error_s", [-3600.0, 3600.0])
def test_the_time_of_the_ledger_goes_on_where_the_clock_of_the_host_steps(
    tmp_path: Path, error_s: float
) -> None:
    async def elapsed_ms() -> int:
        pool = Pool(tmp_path)
        pool.write(CORDONED)
        ledger = pool.ledger()
        await read(ledger)
        virtual_time.AHEAD_S.set(lambda: error_s)
        await asyncio.sleep(20)
        await ledger.poll()
        return ledger.now_ms() - pool.writer.at

    assert 20_000 <= virtual_time.run(0, elapsed_ms) <= 22_000

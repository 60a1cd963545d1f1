"""A past is read from its pool's lane alone, and no further than it matters."""

from __future__ import annotations

import asyncio

import pytest

from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.ranking import ShadowRanked
from shared.contracts.schedules import ShadowComparison, ShadowProposed
from simulator.recorded.pool import RecordedPool, TooManyJobs
from simulator.recorded.reading import UnknownPool, lane_of, read_pool, read_shadows
from tests.simulator.recorded.past import POOL, PoolLedger, at, three_jobs


def test_the_lane_is_that_of_the_pool() -> None:
    log = three_jobs().log
    assert asyncio.run(lane_of(log, POOL)) == 2
    with pytest.raises(UnknownPool, match="'other'"):
        asyncio.run(lane_of(log, "other"))


def test_jobs_that_ended_before_the_replay_begins_are_not_kept() -> None:
    assert list(three_jobs().read(1100, 1200, 2000).jobs) == ["b", "c"]


def test_reading_ends_where_the_time_is_over_and_every_job_has_ended() -> None:
    ledger = three_jobs()
    ledger.write(1700, ledger.pool)
    ledger.write(1800, ledger.pool)
    assert ledger.read(0, 0, 1500).last_at == at(1601)
    assert ledger.read(0, 0, 1650).last_at == at(1700)


def test_more_jobs_than_may_be_held_are_an_error_or_make_room() -> None:
    with pytest.raises(TooManyJobs, match="more than 2 jobs"):
        three_jobs().read(0, 0, 2000, most=2)
    last = RecordedPool(POOL, most=1, only_last=True)
    assert list(asyncio.run(read_pool(three_jobs().log, last)).jobs) == ["a", "b", "c"]
    ledger = PoolLedger()
    ledger.join(0)
    for n in range(9):
        ledger.enqueue(10 * n, f"j{n}", 5)
        ledger.start(10 * n, f"j{n}")
        ledger.end(10 * n + 5, f"j{n}")
    last = RecordedPool(POOL, most=2, only_last=True)
    assert list(asyncio.run(read_pool(ledger.log, last)).jobs)[-2:] == ["j7", "j8"]
    assert len(last.jobs) <= 4


def test_changes_of_the_policy_are_counted_and_other_settings_are_none() -> None:
    ledger = three_jobs()
    other = ledger.pool.model_copy(update={"base_policy": "sjf"})
    ledger.write(50, ledger.pool.model_copy(update={"rank_ms": 9}))
    ledger.write(400, other)
    ledger.write(1900, ledger.pool)
    past = ledger.read(0, 100, 1800)
    assert (past.policy_changes, past.policy_changed_at) == (1, at(400))
    assert past.pool is not None and past.pool.base_policy == "sjf"
    assert three_jobs().read(0, 0, 1800).policy_changed_at is None


def test_shadows_are_those_that_ranked_in_the_time() -> None:
    broker = MemoryBroker()
    ledger = PoolLedger()
    LedgerWriter(broker, "access").write([ledger.pool], at=at(0))
    writer = LedgerWriter(broker, "priority", 2)
    for seconds, policy, agreement in (
        (10, "las", 0.0),
        (20, "las", 0.4),
        (30, "learned:berth", 1.0),
        (40, "las", 0.8),
        (50, "las", -1.0),
    ):
        order = ShadowRanked(pool=POOL, policy=policy, top=(), agreement=agreement)
        writer.write([order], at=at(seconds))
    placement = LedgerWriter(broker, "placement", 2)
    proposed = ShadowProposed(pool=POOL, scheduler="gavel", number=1, until=0)
    for seconds, share in ((10, 0.0), (20, 0.5), (30, 1.0)):
        own = {"compared": ShadowComparison(agreement=share)}
        placement.write([proposed.model_copy(update=own)], at=at(seconds))
    placement.write([proposed.model_copy(update={"refused": "no"})], at=at(40))
    shadows = asyncio.run(read_shadows(MemoryLog(broker), POOL, at(20), at(50)))
    assert [(one.policy, one.orders, one.refused) for one in shadows] == [
        ("las", 2, 0),
        ("learned:berth", 1, 0),
        ("rounds:gavel", 2, 1),
    ]
    assert [one.agreement for one in shadows] == pytest.approx([0.6, 1.0, 0.75])

"""Read models are complete for a lane where no accepted record is behind their positions."""

from __future__ import annotations

import pytest

from services.gateway.reads.read_lag import LEDGERS, check_complete
from services.gateway.responses.problem import ApiError
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.bus.logs.tail import LedgerTail
from shared.contracts.pools import PoolDeleted

LANE = 2
EVENT = PoolDeleted(pool="gpu", partition=LANE)


async def rows_of(broker: MemoryBroker) -> list[dict[str, object]]:
    """Return the positions of read models that have all records."""
    tail = LedgerTail(MemoryLog(broker), {ledger: (LANE,) for ledger in LEDGERS})
    await tail.start()
    while not tail.caught_up:
        await tail.poll(0.0)
    await tail.stop()
    return [
        {"ledger": ledger, "state": tail.cursor(ledger, LANE).to_json().decode()}
        for ledger in LEDGERS
    ]


async def test_ledgers_without_a_record_need_no_position() -> None:
    await check_complete(MemoryLog(MemoryBroker()), LANE, [])


async def test_a_record_behind_a_position_is_missing_in_the_read_models() -> None:
    broker = MemoryBroker()
    admission, placement = (LedgerWriter(broker, ledger, LANE) for ledger in LEDGERS)
    admission.write([EVENT])
    with pytest.raises(ApiError, match="records of admission"):
        await check_complete(MemoryLog(broker), LANE, [])
    rows = await rows_of(broker)
    await check_complete(MemoryLog(broker), LANE, rows)
    placement.write([EVENT])
    with pytest.raises(ApiError, match="records of placement") as refused:
        await check_complete(MemoryLog(broker), LANE, rows)
    assert refused.value.status == 503
    await check_complete(MemoryLog(broker), LANE, await rows_of(broker))


async def test_records_that_no_reader_accepts_are_not_waited_for() -> None:
    broker = MemoryBroker()
    admission = LedgerWriter(broker, "admission", LANE)
    admission.write([EVENT])
    rows = await rows_of(broker)
    admission.scribble(b"of a writer that lost its race")
    await check_complete(MemoryLog(broker), LANE, rows)


async def test_a_ledger_that_ends_before_the_read_models_is_not_trusted() -> None:
    broker = MemoryBroker()
    LedgerWriter(broker, "admission", LANE).write([EVENT])
    with pytest.raises(ApiError, match="read models lack"):
        await check_complete(MemoryLog(MemoryBroker()), LANE, await rows_of(broker))

"""Positions are read back from the last published event that has one."""

from __future__ import annotations

import pytest

from services.publisher import positions
from services.publisher.core.position import HEADER, LanePositions, LedgerPosition, encode
from services.publisher.positions import read_positions
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is written: the end of the log is its end."""
    monkeypatch.setattr(positions, "QUIET_S", 0.001)


def at(offset: int) -> LanePositions:
    cursor = Cursor(offset + 1, offset + 1, f"r{offset}", offset, 1_000 + offset)
    return {"placement": LedgerPosition(cursor, "gpu")}


def publish(broker: MemoryBroker, lane: int, *offsets: int | None) -> None:
    """Append an event per offset; None: one without a position."""
    for offset in offsets:
        headers = () if offset is None else ((HEADER, encode(at(offset))),)
        broker.append(TP("events", lane), b"{}", headers=headers)


async def test_the_last_position_of_each_lane_counts() -> None:
    broker = MemoryBroker()
    publish(broker, 0, 3, 7)
    publish(broker, 2, 5)
    assert await read_positions(MemoryLog(broker), "events", range(3)) == {0: at(7), 2: at(5)}


async def test_a_position_is_read_from_before_any_number_of_events_without_one() -> None:
    broker = MemoryBroker()
    publish(broker, 0, 3, *[None] * 200)
    publish(broker, 1, *[None] * 10)
    assert await read_positions(MemoryLog(broker), "events", range(2)) == {0: at(3)}

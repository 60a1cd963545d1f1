"""Finds the positions to resume at by reading back from the end of the published events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from services.publisher.core.position import HEADER, LanePositions, decode
from shared.bus.logs.log import Entry, Log
from shared.ledger.partition import TP

SLOW_S = 1.0
QUIET_S = 0.3
FIRST_STEP = 1
STEP_FACTOR = 64


async def read_positions(bus: Log, topic: str, lanes: Iterable[int]) -> dict[int, LanePositions]:
    """Return the last positions stored in each lane; a lane without any begins at 0."""
    return {
        lane: decode(_cursor_of(entry) or b"")
        for lane, entry in (await read_last(bus, topic, lanes)).items()
    }


async def read_last(bus: Log, topic: str, lanes: Iterable[int]) -> dict[int, Entry]:
    """Return the last event with a position of each lane that has one."""
    events: dict[int, Entry] = {}
    ranges = [await _offset_range(bus, TP(topic, lane)) for lane in lanes]
    pending, step = [r for r in ranges if r.end > r.begin], FIRST_STEP
    while pending:
        last = await _last_of(bus, pending, step)
        events.update({tp.partition: entry for tp, entry in last.items()})
        pending = [s for s in pending if s.tp not in last and s.start(step) > s.begin]
        step *= STEP_FACTOR
    return events


class OffsetRange(NamedTuple):
    """The offsets that a partition holds; `end` may be lower than the actual end."""

    tp: TP
    begin: int
    end: int

    def start(self, step: int) -> int:
        return max(self.begin, self.end - step)


async def _offset_range(bus: Log, tp: TP) -> OffsetRange:
    return OffsetRange(tp, await bus.begin(tp), await bus.end(tp))


async def _last_of(bus: Log, ranges: list[OffsetRange], step: int) -> dict[TP, Entry]:
    """Read to the ends of the ranges and on until no record arrives."""
    last: dict[TP, Entry] = {}
    remaining = {r.tp: r.end for r in ranges}
    feed = await bus.feed({r.tp: r.start(step) for r in ranges}, lossy=True)
    try:
        while (polled := await feed.poll(SLOW_S if remaining else QUIET_S)) or remaining:
            for tp, entries in polled.items():
                for entry in filter(_cursor_of, entries):
                    last[tp] = entry
                if entries[-1].offset + 1 >= remaining.get(tp, 0):
                    remaining.pop(tp, None)
    finally:
        await feed.close()
    return last


def _cursor_of(entry: Entry) -> bytes | None:
    return next((value for name, value in entry.headers if name == HEADER), None)

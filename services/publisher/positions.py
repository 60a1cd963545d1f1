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
    positions: dict[int, LanePositions] = {}
    ranges = [await _offset_range(bus, TP(topic, lane)) for lane in lanes]
    pending, step = [r for r in ranges if r.end > r.begin], FIRST_STEP
    while pending:
        cursors = await _last_cursors(bus, pending, step)
        positions.update({tp.partition: decode(value) for tp, value in cursors.items()})
        pending = [s for s in pending if s.tp not in cursors and s.start(step) > s.begin]
        step *= STEP_FACTOR
    return positions


class OffsetRange(NamedTuple):
    """The offsets that a partition holds; `end` may be lower than the actual end."""

    tp: TP
    begin: int
    end: int

    def start(self, step: int) -> int:
        return max(self.begin, self.end - step)


async def _offset_range(bus: Log, tp: TP) -> OffsetRange:
    return OffsetRange(tp, await bus.begin(tp), await bus.end(tp))


async def _last_cursors(bus: Log, ranges: list[OffsetRange], step: int) -> dict[TP, bytes]:
    """Read to the ends of the ranges and on until no record arrives."""
    last: dict[TP, bytes] = {}
    remaining = {r.tp: r.end for r in ranges}
    feed = await bus.feed({r.tp: r.start(step) for r in ranges}, lossy=True)
    try:
        while (polled := await feed.poll(SLOW_S if remaining else QUIET_S)) or remaining:
            for tp, entries in polled.items():
                for cursor in filter(None, map(_cursor_of, entries)):
                    last[tp] = cursor
                if entries[-1].offset + 1 >= remaining.get(tp, 0):
                    remaining.pop(tp, None)
    finally:
        await feed.close()
    return last


def _cursor_of(entry: Entry) -> bytes | None:
    return next((value for name, value in entry.headers if name == HEADER), None)

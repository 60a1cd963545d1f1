"""Where to go on: read back from the end of what was written, so nothing else need be kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from services.publisher.core.position import HEADER, LanePositions, decode
from shared.bus.log import Entry, Log
from shared.ledger.partition import TP

SLOW_S = 1.0
QUIET_S = 0.3
FIRST_STEP = 1
STEP_FACTOR = 64


async def read_positions(bus: Log, topic: str, lanes: Iterable[int]) -> dict[int, LanePositions]:
    """Of each lane, the place that the last record with one carries; none: begin at 0."""
    found: dict[int, LanePositions] = {}
    spans = [await _offset_range(bus, TP(topic, lane)) for lane in lanes]
    wanted, step = [span for span in spans if span.end > span.begin], FIRST_STEP
    while wanted:
        cursors = await _last_cursors(bus, wanted, step)
        found.update({tp.partition: decode(value) for tp, value in cursors.items()})
        wanted = [s for s in wanted if s.tp not in cursors and s.start(step) > s.begin]
        step *= STEP_FACTOR
    return found


class OffsetRange(NamedTuple):
    """What a partition holds; the end may say less than there is."""

    tp: TP
    begin: int
    end: int

    def start(self, step: int) -> int:
        return max(self.begin, self.end - step)


async def _offset_range(bus: Log, tp: TP) -> OffsetRange:
    return OffsetRange(tp, await bus.begin(tp), await bus.end(tp))


async def _last_cursors(bus: Log, spans: list[OffsetRange], step: int) -> dict[TP, bytes]:
    """Reads to the ends that were told, and then on until nothing comes."""
    last: dict[TP, bytes] = {}
    short = {span.tp: span.end for span in spans}
    feed = await bus.feed({span.tp: span.start(step) for span in spans}, lossy=True)
    try:
        while (polled := await feed.poll(SLOW_S if short else QUIET_S)) or short:
            for tp, entries in polled.items():
                for cursor in filter(None, map(_cursor_of, entries)):
                    last[tp] = cursor
                if entries[-1].offset + 1 >= short.get(tp, 0):
                    short.pop(tp, None)
    finally:
        await feed.close()
    return last


def _cursor_of(entry: Entry) -> bytes | None:
    return next((value for name, value in entry.headers if name == HEADER), None)

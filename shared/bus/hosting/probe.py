"""Publishes the figures of a decider's lanes: loop delay, lag of the inputs, and states."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from aiokafka.errors import KafkaError

from shared.bus.hosting.lanes import Lanes
from shared.bus.lane.lane import Lane
from shared.contracts.base import Millis
from shared.ledger.errors import BusError
from shared.ledger.partition import TP
from shared.telemetry.figures import Figure
from shared.telemetry.metrics import Metrics
from shared.telemetry.upkeep import run_upkeep

S = TypeVar("S")

LOOK_EVERY_S = 1.0
LAG_EVERY_LOOKS = 5
LAG_MOST_S = 5.0

OfState = Callable[[S, Millis], Iterable[Figure]]
"""A pure function of one lane's state and the time in ms."""

Behind = Callable[[], Awaitable[Mapping[TP, int]]]
"""Returns how many records of each input are not read yet, as the broker counts."""

log = logging.getLogger(__name__)


async def probe_lanes(lanes: Lanes[Any], metrics: Metrics, of_state: OfState[Any]) -> None:
    """Publish figures until cancelled; for `run_service(background=...)`."""
    async with asyncio.TaskGroup() as group:
        group.create_task(run_upkeep(metrics))
        group.create_task(LaneProbe(lanes, metrics, of_state).run())


class Counted(NamedTuple):
    """Counters of a lane since it began."""

    ignored: int
    lost: int


class LaneProbe:
    """Reads the lanes once a second, and the ends of their inputs every five seconds."""

    def __init__(self, lanes: Lanes[Any], metrics: Metrics, of_state: OfState[Any]) -> None:
        self._lanes = lanes
        self._metrics = metrics
        self._of_state = of_state
        self._lags: list[Figure] = []
        self._counted: dict[str, Counted] = {}
        self._steps = 0

    async def run(self) -> None:
        looks = 0
        while True:
            if looks % LAG_EVERY_LOOKS == 0:
                self._lags = await lag(self._lanes.behind)
            looks += 1
            self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    def look(self) -> None:
        lanes = list(self._lanes.held.values())
        figures = [Figure("berth_lanes_held", len(lanes)), *self._lags]
        for partition in self._lanes.halted:
            figures.append(Figure("berth_lanes_halted", 1, (str(partition),)))
        for lane in lanes:
            figures.append(inbox(lane))
            figures.extend(self._figures_of(lane))
        steps = self._lanes.wall.steps
        self._metrics.clock_steps.inc(steps - self._steps)
        self._steps = steps
        self._counted = {lane.name: self._count(lane) for lane in lanes}
        self._metrics.show(figures)

    def _figures_of(self, lane: Lane[Any]) -> list[Figure]:
        """Return the figures of the lane; none, with a log line, if they cannot be computed."""
        try:
            return list(self._of_state(lane.state, lane.now_ms()))
        except Exception:
            log.exception("figures are missing", extra={"lane": lane.tp.key})
            return []

    def _count(self, lane: Lane[Any]) -> Counted:
        """Add what a lane counted since the last look: counters of a process never decrease."""
        counted = Counted(lane.inbox.ignored, lane.lost_appends)
        before = self._counted.get(lane.name, Counted(0, 0))
        self._metrics.ignored_records.labels("reader_rule").inc(counted.ignored - before.ignored)
        self._metrics.lost_appends.inc(counted.lost - before.lost)
        return counted


def inbox(lane: Lane[Any]) -> Figure:
    return Figure("berth_inbox_inputs", lane.inbox.pending_inputs, (str(lane.partition),))


async def probe_lag(behind: Behind, metrics: Metrics) -> None:
    """Publish the lag of a reader without lanes until cancelled."""
    while True:
        metrics.show(await lag(behind))
        await asyncio.sleep(LAG_EVERY_LOOKS * LOOK_EVERY_S)


async def lag(behind: Behind) -> list[Figure]:
    """Return the lags; none while the broker is away, since an old lag would look current."""
    try:
        async with asyncio.timeout(LAG_MOST_S):
            return list(lags(await behind()))
    except (TimeoutError, KafkaError, BusError, OSError):
        return []


def lags(behind: Mapping[TP, int]) -> Iterator[Figure]:
    """Yield the lag of each topic and partition."""
    for (topic, partition), records in sorted(behind.items()):
        yield Figure("berth_consumer_lag_records", records, (topic, str(partition)))

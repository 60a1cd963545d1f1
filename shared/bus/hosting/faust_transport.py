"""Faust's Kafka transport, with other start offsets, direct delivery, and fixed lanes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import faust.transport.drivers.aiokafka as driver

from shared.bus.hosting.backlogs import Backlogs
from shared.bus.logs.kafka import Pace
from shared.ledger.partition import TP

POLL_S = 1.0
BACKLOG_POLL_S = 0.1
"""While a lane is full: once it has room, it waits so long for its next records."""


@dataclass(frozen=True, slots=True)
class HostBinding:
    """Functions and settings of the host, for the transport."""

    assign: Callable[[Iterable[TP]], Awaitable[Mapping[TP, int]]]
    deliver: Callable[[Any], Awaitable[None]]
    is_open: Callable[[int], bool]
    """Whether `deliver` would not have to wait for that lane."""
    lanes: tuple[int, ...]
    embedded: bool
    gather_ms: int


class PacedThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """Has the broker gather records while the lanes are busy."""

    _pace: Pace | None = None

    async def getmany(self, active_partitions: Any, timeout: float) -> Any:
        records = await super().getmany(active_partitions, timeout)
        if self._pace is None:
            binding = self.consumer.binding
            self._pace = Pace(
                self._ensure_consumer(), embedded=binding.embedded, gather_ms=binding.gather_ms
            )
        self._pace.note(bool(records))
        return records


class FixedLanes(PacedThread):
    """Assigns the given lanes without a group: the embedded broker needs 6 s per join."""

    async def subscribe(self, topics: Iterable[str]) -> None:
        await self.call_thread(self._assign, sorted(topics))

    async def _assign(self, topics: list[str]) -> None:
        lanes = self.consumer.binding.lanes
        tps = [driver._TopicPartition(topic, lane) for topic in topics for lane in lanes]
        self._ensure_consumer().assign(tps)
        # Faust waits for `subscribe` to return before it takes an assignment.
        self._announcing = asyncio.ensure_future(self._announce(driver.ensure_TPset(tps)))

    async def _announce(self, tps: set[Any]) -> None:
        self.app.on_rebalance_start()
        await self.on_partitions_revoked(set())
        await self.on_partitions_assigned(tps, self.app.consumer_generation_id)


class LedgerConsumer(driver.Consumer):  # type: ignore[misc]
    """Takes positions from the ledgers, and delivers records straight to their lanes."""

    binding: HostBinding

    def _new_consumer_thread(self) -> Any:
        kind = FixedLanes if self.binding.lanes else PacedThread
        return kind(self, loop=self.loop, beacon=self.beacon)

    async def seek_to_committed(self) -> dict[Any, int]:
        """Seek to the input vectors of the lanes, which are folded first.

        Faust calls it whenever it would continue at committed offsets.
        """
        offsets = dict(await super().seek_to_committed())
        inputs = await self.binding.assign([TP(tp.topic, tp.partition) for tp in self.assignment()])
        positions = {driver._TopicPartition(*tp): offset for tp, offset in inputs.items()}

        async def seek() -> None:
            consumer = self._thread._ensure_consumer()
            for tp, offset in positions.items():
                consumer.seek(tp, offset)

        await self._thread.call_thread(seek)
        return offsets | positions

    async def _drain_messages(self, fetcher: Any) -> None:
        """Deliver records until stopped.

        Faust's version makes tasks and a queue entry per record, a third of the CPU of a service.
        """
        backlogs = Backlogs(self._deliver_late, self._pause_lane, self._resume_lane)
        try:
            while not (self._stopped.is_set() or fetcher._stopped.is_set()):
                await self.sleep(0)
                if all(tp.partition in backlogs for tp in self.assignment()):
                    await backlogs.wait_for_one()
                timeout_s = BACKLOG_POLL_S if backlogs else POLL_S
                async for tp, message in self.getmany(timeout=timeout_s):
                    await self._deliver(message, backlogs)
                    self._read_offset[tp] = message.offset
                    self.ack(message)
        except (*self.consumer_stopped_errors, asyncio.CancelledError):
            if not self.transport.app.should_stop:
                raise
        finally:
            await backlogs.close()

    async def verify_all_partitions_active(self) -> None:
        """Do nothing: Faust's version logs an error for inputs whose records reach no stream.

        No record reaches one here; the `Watchdog` detects inputs that grow unread.
        """

    async def _deliver(self, message: Any, backlogs: Backlogs) -> None:
        """Deliver a record; one of a full lane waits, and those of other lanes go on."""
        lane = message.partition
        if lane not in backlogs and self.binding.is_open(lane):
            return await self.binding.deliver(message)
        backlogs.add(lane, message)

    async def _deliver_late(self, message: Any) -> bool:
        """Deliver a record of a full lane; False if a rebalance begins before it has room.

        A record that is left out then is read again.
        """
        await self.wait_first(self.binding.deliver(message), self.suspend_flow.wait())
        return not self.suspend_flow.is_set()

    def _pause_lane(self, lane: int) -> None:
        """Fetch no more for the lane. The set is a new one: the consumer's thread reads the old."""
        tps = {tp for tp in self._get_active_partitions() if tp.partition == lane}
        self._paused_partitions |= tps
        self._active_partitions = self._get_active_partitions() - tps

    def _resume_lane(self, lane: int) -> None:
        tps = {tp for tp in self._paused_partitions if tp.partition == lane}
        self._paused_partitions -= tps
        self._active_partitions = self._get_active_partitions() | (tps & self.assignment())


def transport(app: Any, binding: HostBinding) -> Any:
    """Return a transport for `app.transport`."""
    consumer = type("BoundConsumer", (LedgerConsumer,), {"binding": binding})
    bound = type("BoundTransport", (driver.Transport,), {"Consumer": consumer})
    return bound(app.conf.broker, app)

"""Faust's Kafka transport, with other start offsets, direct delivery, and fixed lanes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import faust.transport.drivers.aiokafka as driver

from shared.bus.kafka import Pace
from shared.ledger.partition import TP


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
        try:
            while not (self._stopped.is_set() or fetcher._stopped.is_set()):
                await self.sleep(0)
                async for tp, message in self.getmany(timeout=1.0):
                    await self._deliver(message)
                    self._read_offset[tp] = message.offset
                    self.ack(message)
        except (*self.consumer_stopped_errors, asyncio.CancelledError):
            if not self.transport.app.should_stop:
                raise

    async def verify_all_partitions_active(self) -> None:
        """Do nothing: Faust's version logs an error for inputs whose records reach no stream.

        No record reaches one here; the `Watchdog` detects inputs that grow unread.
        """

    async def _deliver(self, message: Any) -> None:
        """Deliver a record, unless a rebalance begins while its lane is full.

        A record that is left out then is read again.
        """
        if self.binding.is_open(message.partition):
            return await self.binding.deliver(message)
        await self.wait_first(self.binding.deliver(message), self.suspend_flow.wait())


def transport(app: Any, binding: HostBinding) -> Any:
    """Return a transport for `app.transport`."""
    consumer = type("BoundConsumer", (LedgerConsumer,), {"binding": binding})
    bound = type("BoundTransport", (driver.Transport,), {"Consumer": consumer})
    return bound(app.conf.broker, app)

"""Faust's Kafka transport, changed in where it reads on, how records come, and fixed lanes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import faust.transport.drivers.aiokafka as driver

from shared.bus.kafka import Pace
from shared.ledger.partition import TP


@dataclass(frozen=True, slots=True)
class Desk:
    """The functions of the host that the transport calls."""

    own: Callable[[Iterable[TP]], Awaitable[Mapping[TP, int]]]
    take: Callable[[Any], Awaitable[None]]
    is_open: Callable[[int], bool]
    """False while `take` would have to wait for that lane."""
    lanes: tuple[int, ...]
    embedded: bool
    gather_ms: int


class PacedThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """Lets the broker gather while there is much to do."""

    _pace: Pace | None = None

    async def getmany(self, active_partitions: Any, timeout: float) -> Any:
        records = await super().getmany(active_partitions, timeout)
        if self._pace is None:
            desk = self.consumer.desk
            self._pace = Pace(
                self._ensure_consumer(), embedded=desk.embedded, gather_ms=desk.gather_ms
            )
        self._pace.note(bool(records))
        return records


class FixedLanes(PacedThread):
    """Takes the lanes it is told, without a group: the embedded broker needs 6 s per join."""

    async def subscribe(self, topics: Iterable[str]) -> None:
        await self.call_thread(self._assign, sorted(topics))

    async def _assign(self, topics: list[str]) -> None:
        lanes = self.consumer.desk.lanes
        tps = [driver._TopicPartition(topic, lane) for topic in topics for lane in lanes]
        self._ensure_consumer().assign(tps)
        # Faust waits for `subscribe` to return before it takes an assignment.
        self._announcing = asyncio.ensure_future(self._announce(driver.ensure_TPset(tps)))

    async def _announce(self, tps: set[Any]) -> None:
        self.app.on_rebalance_start()
        await self.on_partitions_revoked(set())
        await self.on_partitions_assigned(tps, self.app.consumer_generation_id)


class LedgerConsumer(driver.Consumer):  # type: ignore[misc]
    """Positions come from the ledgers, and records go straight to their lanes."""

    desk: Desk

    def _new_consumer_thread(self) -> Any:
        kind = FixedLanes if self.desk.lanes else PacedThread
        return kind(self, loop=self.loop, beacon=self.beacon)

    async def seek_to_committed(self) -> dict[Any, int]:
        """Faust calls it whenever it has to read "on": fold, then go where the vector says."""
        offsets = dict(await super().seek_to_committed())
        to = await self.desk.own([TP(tp.topic, tp.partition) for tp in self.assignment()])
        places = {driver._TopicPartition(*tp): offset for tp, offset in to.items()}

        async def seek() -> None:
            consumer = self._thread._ensure_consumer()
            for tp, offset in places.items():
                consumer.seek(tp, offset)

        await self._thread.call_thread(seek)
        return offsets | places

    async def _drain_messages(self, fetcher: Any) -> None:
        """Faust's own makes tasks and a queue entry of each record, which is a third of our CPU."""
        try:
            while not (self._stopped.is_set() or fetcher._stopped.is_set()):
                await self.sleep(0)
                async for tp, message in self.getmany(timeout=1.0):
                    await self._hand_over(message)
                    self._read_offset[tp] = message.offset
                    self.ack(message)
        except (*self.consumer_stopped_errors, asyncio.CancelledError):
            if not self.transport.app.should_stop:
                raise

    async def verify_all_partitions_active(self) -> None:
        """Faust's own calls an input dead whose records reach no stream of its: none of ours does.
        `Lanes._watch` looks after inputs that move while we stand."""

    async def _hand_over(self, message: Any) -> None:
        """A lane that is full must not hold up a rebalance; what it misses is sought again."""
        if self.desk.is_open(message.partition):
            return await self.desk.take(message)
        await self.wait_first(self.desk.take(message), self.suspend_flow.wait())


def transport(app: Any, desk: Desk) -> Any:
    """A transport for `app.transport`."""
    consumer = type("BoundConsumer", (LedgerConsumer,), {"desk": desk})
    bound = type("BoundTransport", (driver.Transport,), {"Consumer": consumer})
    return bound(app.conf.broker, app)

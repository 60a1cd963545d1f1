"""Detects a consumer that stalls while its topics grow; aiokafka does not report that itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from time import monotonic

from aiokafka import AIOKafkaConsumer, TopicPartition

from shared.ledger.errors import Stalled

CHECK_EVERY_S = 5.0
STALLED_S = 15.0


class ConsumerProgress:
    """The progress of one consumer since its start."""

    def __init__(self) -> None:
        self._checked_s = monotonic()
        self._stalled_at: dict[TopicPartition, tuple[int, float]] = {}
        """Position at which a partition was first found to lag, and the time since then."""
        self.behind = 0
        """Unread records of all topics at the last check."""

    async def check(
        self, consumer: AIOKafkaConsumer, topics: Iterable[str], paused: Collection[str] = ()
    ) -> None:
        """Query the broker every `CHECK_EVERY_S`; raises Stalled, except for paused topics."""
        now_s = monotonic()
        if now_s - self._checked_s < CHECK_EVERY_S:
            return
        self._checked_s = now_s
        positions = await _positions(consumer, topics)
        self.behind = sum(max(0, end - at) for at, end in positions.values())
        for tp, (at, end) in positions.items():
            self._note(tp, at, at if tp.topic in paused else end, now_s)

    def _note(self, tp: TopicPartition, at: int, end: int, now_s: float) -> None:
        if at >= end:
            self._stalled_at.pop(tp, None)
            return
        stalled_at, since_s = self._stalled_at.setdefault(tp, (at, now_s))
        if stalled_at != at:
            self._stalled_at[tp] = at, now_s
        elif now_s - since_s > STALLED_S:
            raise Stalled(f"{tp.topic}-{tp.partition} has {end} records; consumer stalled at {at}")


async def _positions(
    consumer: AIOKafkaConsumer, topics: Iterable[str]
) -> dict[TopicPartition, tuple[int, int]]:
    """Return position and end of each assigned partition.

    A consumer without partitions may be the spare of a working group or excluded from it: then the
    commits of the group show whether any member reads.
    """
    assigned = consumer.assignment()
    partitions = assigned or {
        TopicPartition(topic, partition)
        for topic in topics
        for partition in consumer.partitions_for_topic(topic) or ()
    }
    ends = await consumer.end_offsets(partitions)
    return {tp: (await _position(consumer, tp, tp in assigned), ends[tp]) for tp in partitions}


async def _position(consumer: AIOKafkaConsumer, tp: TopicPartition, is_assigned: bool) -> int:
    offset = await (consumer.position(tp) if is_assigned else consumer.committed(tp))
    return int(offset or 0)

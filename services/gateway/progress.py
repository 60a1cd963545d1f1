"""Notices a consumer that stands still while its topics go on: aiokafka does not say so itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from time import monotonic

from aiokafka import AIOKafkaConsumer, TopicPartition

from shared.ledger.errors import Stalled

LOOK_EVERY_S = 5.0
STALLED_S = 15.0


class ConsumerProgress:
    """Of one consumer, from its start."""

    def __init__(self) -> None:
        self._looked_s = monotonic()
        self._stands: dict[TopicPartition, tuple[int, float]] = {}
        """Where it stood when it was first seen to be behind, and since when."""
        self.behind = 0
        """Records of all topics that it had not read yet at the last look."""

    async def check(
        self, consumer: AIOKafkaConsumer, topics: Iterable[str], left: Collection[str] = ()
    ) -> None:
        """Call it often: it asks the broker now and then. Raises Stalled; not for topics that were
        left where they are on purpose."""
        now_s = monotonic()
        if now_s - self._looked_s < LOOK_EVERY_S:
            return
        self._looked_s = now_s
        places = await _places(consumer, topics)
        self.behind = sum(max(0, end - at) for at, end in places.values())
        for tp, (at, end) in places.items():
            self._note(tp, at, at if tp.topic in left else end, now_s)

    def _note(self, tp: TopicPartition, at: int, end: int, now_s: float) -> None:
        if at >= end:
            self._stands.pop(tp, None)
            return
        where, since_s = self._stands.setdefault(tp, (at, now_s))
        if where != at:
            self._stands[tp] = at, now_s
        elif now_s - since_s > STALLED_S:
            raise Stalled(f"{tp.topic}-{tp.partition} goes on to {end}, and we stand at {at}")


async def _places(
    consumer: AIOKafkaConsumer, topics: Iterable[str]
) -> dict[TopicPartition, tuple[int, int]]:
    """Position and end of what it holds. Who holds nothing may be the spare of a group at work, or
    have been left out of it: then the group's commits tell whether anybody reads."""
    held = consumer.assignment()
    places = held or {
        TopicPartition(topic, partition)
        for topic in topics
        for partition in consumer.partitions_for_topic(topic) or ()
    }
    ends = await consumer.end_offsets(places)
    return {tp: (await _at(consumer, tp, tp in held), ends[tp]) for tp in places}


async def _at(consumer: AIOKafkaConsumer, tp: TopicPartition, held: bool) -> int:
    found = await (consumer.position(tp) if held else consumer.committed(tp))
    return int(found or 0)

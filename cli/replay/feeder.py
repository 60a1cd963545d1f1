"""Publishes submissions to Kafka, each at its time; a repeat has the same key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cli.replay.submission import Submission
from shared.bus.logs.producer import TopicProducer
from shared.contracts.topics import submissions
from shared.ledger.errors import OutcomeUnknown
from shared.process.connection import Connection

LINGER_MS = 5
TRIES = 5
RETRY_S = 0.5


class Timed(NamedTuple):
    """A submission and its time in seconds after the start."""

    at_s: float
    submission: Submission


@dataclass(slots=True)
class Feeder:
    """One pass over a list in order of time; `sent` counts acknowledged submissions."""

    connection: Connection
    partitions: int
    sent: int = 0

    async def run(self, due: Sequence[Timed]) -> None:
        """Return when all are acknowledged. Raises OutcomeUnknown if one is not."""
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        producer = TopicProducer(self.connection, linger_ms=LINGER_MS, client="berth-replay")
        async with producer, asyncio.TaskGroup() as group:
            for number, (at_s, submission) in enumerate(due):
                await asyncio.sleep(max(0.0, start_s + at_s - loop.time()))
                group.create_task(self._send(producer, number, submission))

    async def _send(self, producer: TopicProducer, number: int, submission: Submission) -> None:
        topic = submissions(submission.tenant).name
        value = submission.encoded()
        for left in reversed(range(TRIES)):
            try:
                await producer.send(topic, number % self.partitions, value)
            except OutcomeUnknown:
                # Sending again is safe: the idempotency key makes it the same job.
                if not left:
                    raise
                await asyncio.sleep(RETRY_S)
            else:
                self.sent += 1
                return

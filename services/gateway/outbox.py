"""Appends commands to their lanes; who waits here knows that the broker has them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from services.gateway.problem import ApiError, unavailable
from shared.bus.clock import now_ms
from shared.connection import Connection
from shared.contracts.base import Command
from shared.contracts.codec import encode
from shared.ledger import cloudevents

SOURCE = "/berth/gateway"
QUEUE_WITHIN_S = 1.5
ACK_WITHIN_S = 2.5
LOOK_EVERY_S = 1.0
LOOK_WITHIN_S = 2.0
REQUEST_TIMEOUT_MS = 3000
BATCH_BYTES = 512 * 1024
RETRY_S = 0.5

log = logging.getLogger(__name__)

Ack: TypeAlias = "asyncio.Future[object]"


@dataclass(frozen=True, slots=True)
class OutgoingCommand:
    """A command on its way, with what its envelope says."""

    id: str
    command: Command
    subject: str
    tenant: str = ""
    pool: str = ""
    traceparent: str = ""
    principal: str = ""
    access_next: int = 0
    """How far the gateway had read `access` when it let this through: its receiver waits until it
    has read as much, lest it know less of who may do what."""

    def within(self, traceparent: str) -> OutgoingCommand:
        return replace(self, traceparent=traceparent)

    def encoded(self) -> bytes:
        return cloudevents.encode(
            id=self.id,
            source=SOURCE,
            type=self.command.TYPE,
            data=encode(self.command),
            at_ms=now_ms(),
            subject=self.subject,
            traceparent=self.traceparent,
            tenant=self.tenant,
            pool=self.pool,
            principal=self.principal,
            accessnext=self.access_next,
        )


class Outbox:
    """One producer; appends that come together share a batch."""

    def __init__(self, connection: Connection, *, linger_ms: int) -> None:
        self._connection = connection
        self._linger_ms = linger_ms
        self._producer: AIOKafkaProducer | None = None
        self._failing = False

    @property
    def ready(self) -> bool:
        """The broker answered, and the last append was acknowledged."""
        return self._producer is not None and not self._failing

    async def run(self) -> None:
        """Connects, however long the broker takes, and stays until it is cancelled."""
        try:
            while not await self._connect():
                await asyncio.sleep(RETRY_S)
            await self._watch()
        finally:
            producer, self._producer = self._producer, None
            if producer is not None:
                await producer.stop()

    async def put(self, topic: str, partition: int, letter: OutgoingCommand) -> None:
        """Returns once the command is acknowledged; raises a 503 Refusal if that is not known."""
        await self.acknowledged([await self.post(topic, partition, letter)])

    async def post(self, topic: str, partition: int, letter: OutgoingCommand) -> Ack:
        """Only queued, in the order of the calls; `acknowledged` tells how it went."""
        if self._producer is None or self._failing:
            raise _broker_unavailable("not connected")
        headers = [("traceparent", letter.traceparent.encode())] if letter.traceparent else []
        try:
            async with asyncio.timeout(QUEUE_WITHIN_S):
                sent: Ack = await self._producer.send(
                    topic,
                    letter.encoded(),
                    key=letter.subject.encode(),
                    partition=partition,
                    headers=headers,
                )
                return sent
        except (KafkaError, OSError, TimeoutError) as error:
            raise self._failed(error) from None

    async def acknowledged(self, acks: Sequence[Ack]) -> None:
        """Once the broker has them all. A client that hangs up, or waits no longer, must not
        cancel the batch of the others: the futures are watched, not awaited."""
        done, waiting = await asyncio.wait(acks, timeout=ACK_WITHIN_S)
        for ack in done:
            if (error := ack.exception()) is not None:
                raise self._failed(error)
        if waiting:
            raise self._failed(TimeoutError())
        self._failing = False

    def _failed(self, error: BaseException) -> ApiError:
        self._failing = True
        return _broker_unavailable(type(error).__name__)

    async def _watch(self) -> None:
        """Knows of a lost broker before anybody asks, and of its return."""
        while self._producer is not None:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                async with asyncio.timeout(LOOK_WITHIN_S):
                    answered: bool = await self._producer.client.force_metadata_update()
            except TimeoutError:
                answered = False
            self._failing = not answered

    async def _connect(self) -> bool:
        producer = AIOKafkaProducer(
            **self._connection.aiokafka(),
            client_id="berth-gateway",
            acks="all",
            enable_idempotence=self._connection.idempotent,
            linger_ms=self._linger_ms,
            max_batch_size=BATCH_BYTES,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        )
        try:
            await producer.start()
        except (KafkaError, OSError) as error:
            log.warning("no broker yet", extra={"reason": type(error).__name__})
            await producer.stop()
            return False
        self._producer = producer
        return True


def _broker_unavailable(why: str) -> ApiError:
    return unavailable("broker_unavailable", f"nothing was acknowledged: {why}")

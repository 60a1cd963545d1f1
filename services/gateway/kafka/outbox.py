"""Appends commands to their lanes and waits for the acknowledgement of the broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from services.gateway.responses.problem import ApiError, unavailable
from shared.bus.clock import now_ms
from shared.contracts.base import Command
from shared.contracts.codec import encode
from shared.ledger import cloudevents
from shared.process.connection import Connection

SOURCE = "/berth/gateway"
QUEUE_TIMEOUT_S = 1.5
ACK_TIMEOUT_S = 2.5
CHECK_EVERY_S = 1.0
CHECK_TIMEOUT_S = 2.0
REQUEST_TIMEOUT_MS = 3000
BATCH_BYTES = 512 * 1024
RETRY_S = 0.5

log = logging.getLogger(__name__)

Ack: TypeAlias = "asyncio.Future[object]"


@dataclass(frozen=True, slots=True)
class OutgoingCommand:
    """A command with the fields of its envelope."""

    id: str
    command: Command
    subject: str
    tenant: str = ""
    pool: str = ""
    traceparent: str = ""
    principal: str = ""
    access_next: int = 0
    """Offset up to which the gateway had read `access` when it authorized the command: the receiver
    waits until it has read as far, so that it applies the same tenants and keys."""

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
    """One producer; concurrent appends share a batch."""

    def __init__(self, connection: Connection, *, linger_ms: int) -> None:
        self._connection = connection
        self._linger_ms = linger_ms
        self._producer: AIOKafkaProducer | None = None
        self._failing = False

    @property
    def ready(self) -> bool:
        """True while the broker answers and the last append was acknowledged."""
        return self._producer is not None and not self._failing

    async def run(self) -> None:
        """Connect, retrying without limit, and watch the broker until cancelled."""
        try:
            while not await self._connect():
                await asyncio.sleep(RETRY_S)
            await self._watch()
        finally:
            producer, self._producer = self._producer, None
            if producer is not None:
                await producer.stop()

    async def put(self, topic: str, partition: int, command: OutgoingCommand) -> None:
        """Return once the command is acknowledged; raises ApiError 503 if that is not known."""
        await self.wait_acknowledged([await self.post(topic, partition, command)])

    async def post(self, topic: str, partition: int, command: OutgoingCommand) -> Ack:
        """Queue the command in the order of the calls; `wait_acknowledged` reports the outcome."""
        if self._producer is None or self._failing:
            raise _broker_unavailable("not connected")
        headers = [("traceparent", command.traceparent.encode())] if command.traceparent else []
        try:
            async with asyncio.timeout(QUEUE_TIMEOUT_S):
                sent: Ack = await self._producer.send(
                    topic,
                    command.encoded(),
                    key=command.subject.encode(),
                    partition=partition,
                    headers=headers,
                )
                return sent
        except (KafkaError, OSError, TimeoutError) as error:
            raise self._failed(error) from None

    async def wait_acknowledged(self, acks: Sequence[Ack]) -> None:
        """Return once all are acknowledged; raises ApiError 503 otherwise. The futures are watched,
        not awaited: a client that disconnects must not cancel the batch of the others."""
        done, waiting = await asyncio.wait(acks, timeout=ACK_TIMEOUT_S)
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
        """Check the broker regularly, so that its loss and return show before the next command."""
        while self._producer is not None:
            await asyncio.sleep(CHECK_EVERY_S)
            try:
                async with asyncio.timeout(CHECK_TIMEOUT_S):
                    answered: bool = await self._producer.client.force_metadata_update()
            except TimeoutError:
                answered = False
            self._failing = not answered

    async def _connect(self) -> bool:
        producer = AIOKafkaProducer(
            **self._connection.producing(),
            client_id="berth-gateway",
            linger_ms=self._linger_ms,
            max_batch_size=BATCH_BYTES,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        )
        try:
            await producer.start()
        except (KafkaError, OSError) as error:
            log.warning("broker not reachable", extra={"reason": type(error).__name__})
            await producer.stop()
            return False
        self._producer = producer
        return True


def _broker_unavailable(cause: str) -> ApiError:
    return unavailable("broker_unavailable", f"command not acknowledged: {cause}")

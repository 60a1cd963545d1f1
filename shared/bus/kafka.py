"""The log on Apache Kafka, or on the embedded broker, through aiokafka."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
)

from shared.bus.authentication import NOT_ALLOWED, check_authentication
from shared.bus.log import Entry, Feed, Headers
from shared.bus.retry import retry_while_away
from shared.bus.stop_client import stop_client
from shared.connection import Connection
from shared.ledger.errors import Forbidden, OutcomeUnknown, TailLost, TooLarge
from shared.ledger.partition import TP

MAX_REQUEST_BYTES = 1_048_576
FETCH_BYTES = 4 * 1024 * 1024
REQUEST_TIMEOUT_MS = 5_000
FETCH_WAIT_MS = 500
GATHER_MS = 20
GATHER_BYTES = 256 * 1024
BUSY_FOR_S = 0.25
BUSY_WAIT_MS = 40
IDLE_WAIT_MS = 400
IDLE_AFTER_S = 2.0
HANG_UP_S = 1.0


class Pace:
    """How long a fetch may wait for data, and for how much of it.

    Kafka answers a waiting fetch when enough data came. Each fetch costs about a millisecond of
    CPU here, so a reader that is busy lets the broker gather for `gather_ms`; an idle one is told
    at once. The embedded broker sleeps half of the time that it was given and only then looks
    again, so it is given little, and less when it is busy.
    """

    def __init__(
        self, consumer: AIOKafkaConsumer, *, embedded: bool, gather_ms: int = GATHER_MS
    ) -> None:
        self._consumer = consumer
        self._embedded = embedded
        self._gather_ms = gather_ms
        self._records_at = 0.0

    def note(self, has_records: bool) -> None:
        """To be called after each poll."""
        now = time.monotonic()
        if has_records:
            self._records_at = now
        idle_s = now - self._records_at
        fetcher = self._consumer._fetcher
        if self._embedded:
            fetcher._fetch_max_wait_ms = BUSY_WAIT_MS if idle_s < IDLE_AFTER_S else IDLE_WAIT_MS
        elif idle_s < BUSY_FOR_S:
            fetcher._fetch_min_bytes, fetcher._fetch_max_wait_ms = GATHER_BYTES, self._gather_ms
        else:
            fetcher._fetch_min_bytes, fetcher._fetch_max_wait_ms = 1, FETCH_WAIT_MS


class KafkaFeed:
    """A consumer without a group: positions are the caller's business."""

    def __init__(self, consumer: AIOKafkaConsumer, pace: Pace) -> None:
        self._consumer = consumer
        self._pace = pace

    async def poll(self, wait_s: float, max_records: int = 500) -> dict[TP, list[Entry]]:
        try:
            records = await self._consumer.getmany(
                timeout_ms=int(wait_s * 1000), max_records=max_records
            )
        except OffsetOutOfRangeError as error:
            raise TailLost(f"the log no longer has what is due: {error}") from error
        self._pace.note(bool(records))
        return {
            TP(tp.topic, tp.partition): [
                Entry(m.offset, m.key, m.value, tuple(m.headers or ()), m.timestamp)
                for m in messages
            ]
            for tp, messages in records.items()
        }

    async def seek(self, tp: TP, offset: int) -> None:
        self._consumer.seek(TopicPartition(*tp), offset)

    async def close(self) -> None:
        await stop_client(self._consumer)


class KafkaLog:
    """One producer with one record in flight, and consumers as they are asked for.

    `gather_ms` is how long a busy reader lets the broker gather. A broker that is away is waited
    for, `patience_s` at most; only an append is never tried again by itself.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        client: str = "berth",
        gather_ms: int = GATHER_MS,
        patience_s: float = math.inf,
    ) -> None:
        self._gather_ms = gather_ms
        self._patience_s = patience_s
        self._connection = connection
        self._client = client
        self._producer: AIOKafkaProducer | None = None
        self._looker: AIOKafkaConsumer | None = None

    async def start(self) -> None:
        if self._looker is None:
            self._looker = await self._consumer("none")

    async def stop(self) -> None:
        await self._drop_producer()
        if self._looker is not None:
            looker, self._looker = self._looker, None
            await stop_client(looker)

    async def append(
        self, tp: TP, value: bytes, *, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        try:
            producer = await self._ensure_producer()
            meta = await producer.send_and_wait(
                tp.topic, value, key=key, partition=tp.partition, headers=list(headers)
            )
        except RecordTooLargeError as error:
            raise TooLarge(f"{tp.key}: {len(value)} bytes are more than a record holds") from error
        except NOT_ALLOWED as error:
            await self._drop_producer()
            raise Forbidden(f"{tp.key}: {self._connection.user} may not append") from error
        except (TimeoutError, KafkaError, OSError) as error:
            await self._drop_producer()
            raise OutcomeUnknown(f"{tp.key}: {error!r}") from error
        return int(meta.offset)

    async def feed(self, start: Mapping[TP, int], *, lossy: bool = False) -> Feed:
        consumer = await self._consumer("earliest" if lossy else "none")
        partitions = {TopicPartition(*tp): offset for tp, offset in start.items()}
        consumer.assign(list(partitions))
        for tp, offset in partitions.items():
            consumer.seek(tp, offset)
        pace = Pace(consumer, embedded=not self._connection.idempotent, gather_ms=self._gather_ms)
        return KafkaFeed(consumer, pace)

    async def begin(self, tp: TP) -> int:
        there = TopicPartition(*tp)
        offsets = await retry_while_away(
            lambda: self._look().beginning_offsets([there]), self._patience_s
        )
        return int(offsets[there])

    async def end(self, tp: TP) -> int:
        there = TopicPartition(*tp)
        offsets = await retry_while_away(
            lambda: self._look().end_offsets([there]), self._patience_s
        )
        return int(offsets[there])

    def _look(self) -> AIOKafkaConsumer:
        if self._looker is None:
            raise RuntimeError("the log is not started")
        return self._looker

    async def _consumer(self, reset: str) -> AIOKafkaConsumer:
        """A started one."""
        return await retry_while_away(lambda: self._try_consumer(reset), self._patience_s)

    async def _try_consumer(self, reset: str) -> AIOKafkaConsumer:
        consumer = self._new_consumer(reset)
        try:
            await consumer.start()
        except BaseException as error:
            await stop_client(consumer)
            if isinstance(error, KafkaConnectionError):
                await check_authentication(self._connection)
            raise
        return consumer

    def _new_consumer(self, reset: str) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            **self._connection.aiokafka(),
            client_id=self._client,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset=reset,
            max_partition_fetch_bytes=FETCH_BYTES,
            fetch_max_wait_ms=FETCH_WAIT_MS if self._connection.idempotent else BUSY_WAIT_MS,
        )

    async def _ensure_producer(self) -> AIOKafkaProducer:
        if self._producer is None:
            producer = AIOKafkaProducer(
                **self._connection.aiokafka(),
                client_id=self._client,
                acks="all",
                enable_idempotence=self._connection.idempotent,
                linger_ms=0,
                max_request_size=MAX_REQUEST_BYTES,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
            )
            try:
                await producer.start()
            except BaseException:
                await stop_client(producer, HANG_UP_S)
                raise
            self._producer = producer
        return self._producer

    async def _drop_producer(self) -> None:
        """After an error: the outcome is unknown, and so is what this producer still holds."""
        if self._producer is None:
            return
        producer, self._producer = self._producer, None
        await stop_client(producer, HANG_UP_S)

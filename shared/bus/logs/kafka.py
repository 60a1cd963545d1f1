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

from shared.bus.logs.authentication import NOT_ALLOWED, check_authentication
from shared.bus.logs.broker_outage import retry_while_away
from shared.bus.logs.log import Entry, Feed, Headers
from shared.bus.logs.stop_client import stop_client
from shared.ledger.errors import Forbidden, OutcomeUnknown, TailLost, TooLarge
from shared.ledger.partition import TP
from shared.process.connection import Connection

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
    """Adapts how long a fetch of a consumer may wait for data, and for how much of it.

    Kafka answers a waiting fetch when enough data came. Each fetch costs about a millisecond of
    CPU here, so for a busy reader the broker gathers for `gather_ms`, and an idle one gets a record
    at once. The embedded broker sleeps half of the fetch wait before it checks again, so the wait
    is short, and shorter for a busy reader.
    """

    def __init__(
        self, consumer: AIOKafkaConsumer, *, embedded: bool, gather_ms: int = GATHER_MS
    ) -> None:
        self._consumer = consumer
        self._embedded = embedded
        self._gather_ms = gather_ms
        self._records_at = 0.0

    def note(self, has_records: bool) -> None:
        """Note the outcome of a poll; call it after each."""
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
    """A consumer without a group; the caller keeps the positions."""

    def __init__(self, consumer: AIOKafkaConsumer, pace: Pace) -> None:
        self._consumer = consumer
        self._pace = pace

    async def poll(self, wait_s: float, max_records: int = 500) -> dict[TP, list[Entry]]:
        try:
            records = await self._consumer.getmany(
                timeout_ms=int(wait_s * 1000), max_records=max_records
            )
        except OffsetOutOfRangeError as error:
            raise TailLost(f"offset out of range: {error}: tail lost") from error
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
    """One producer with one record in flight, and a consumer per feed.

    `gather_ms` is the fetch wait of a busy reader. Requests are repeated while the broker is away,
    for `max_away_s` at most; only an append is never repeated. Its outcome is unknown when the
    broker has not answered for `append_ms`.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        client: str = "berth",
        gather_ms: int = GATHER_MS,
        max_away_s: float = math.inf,
        append_ms: int = REQUEST_TIMEOUT_MS,
    ) -> None:
        self._gather_ms = gather_ms
        self._max_away_s = max_away_s
        self._append_ms = append_ms
        self._connection = connection
        self._client = client
        self._producer: AIOKafkaProducer | None = None
        self._offsets_consumer: AIOKafkaConsumer | None = None

    async def start(self) -> None:
        if self._offsets_consumer is None:
            self._offsets_consumer = await self._consumer("none")

    async def stop(self) -> None:
        await self._drop_producer()
        if self._offsets_consumer is not None:
            consumer, self._offsets_consumer = self._offsets_consumer, None
            await stop_client(consumer)

    async def append(
        self, tp: TP, value: bytes, *, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        try:
            producer = await self._ensure_producer()
            meta = await producer.send_and_wait(
                tp.topic, value, key=key, partition=tp.partition, headers=list(headers)
            )
        except RecordTooLargeError as error:
            raise TooLarge(f"{tp.key}: record of {len(value)} bytes is too large") from error
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
        partition = TopicPartition(*tp)
        offsets = await retry_while_away(
            lambda: self._started_consumer().beginning_offsets([partition]), self._max_away_s
        )
        return int(offsets[partition])

    async def end(self, tp: TP) -> int:
        partition = TopicPartition(*tp)
        offsets = await retry_while_away(
            lambda: self._started_consumer().end_offsets([partition]), self._max_away_s
        )
        return int(offsets[partition])

    def _started_consumer(self) -> AIOKafkaConsumer:
        if self._offsets_consumer is None:
            raise RuntimeError("the log is not started")
        return self._offsets_consumer

    async def _consumer(self, reset: str) -> AIOKafkaConsumer:
        """Return a started consumer."""
        return await retry_while_away(lambda: self._try_consumer(reset), self._max_away_s)

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
                **self._connection.producing(),
                client_id=self._client,
                linger_ms=0,
                max_request_size=MAX_REQUEST_BYTES,
                request_timeout_ms=self._append_ms,
            )
            try:
                await producer.start()
            except BaseException:
                await stop_client(producer, HANG_UP_S)
                raise
            self._producer = producer
        return self._producer

    async def _drop_producer(self) -> None:
        """Stop the producer after an error: it may hold records of unknown outcome."""
        if self._producer is None:
            return
        producer, self._producer = self._producer, None
        await stop_client(producer, HANG_UP_S)

"""Kafka ingress: what tenants write to their own topics becomes commands; never stops for one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import CommitFailedError, KafkaError

from services.gateway.access import Access
from services.gateway.inbound import PREFIX, Arrived, Parcel, parcel
from services.gateway.outbox import Ack, Letter, Outbox
from services.gateway.problem import Refusal
from shared.contracts.jobs import SubmitJob
from shared.telemetry.names import AttributeKey
from shared.telemetry.setup import Telemetry

GROUP = "berth-gateway"
TOPIC = "commands"
REFRESH_S = 1.0
RETRY_S = 0.5
MAX_RECORDS = 500
POLL_MS = 200

log = logging.getLogger(__name__)


class Ingress:
    """Offsets are committed after the commands are acknowledged: a crash repeats, never loses."""

    def __init__(
        self,
        servers: str,
        instance: str,
        access: Access,
        outbox: Outbox,
        telemetry: Telemetry,
        note: Callable[[str, str, int], None],
        *,
        alone_with: int = 0,
    ) -> None:
        """`alone_with` partitions in each tenant's topic: no other gateway shares the work, so no
        group has to form, which takes the embedded broker 6 s, and again for each new tenant.
        Offsets are committed all the same. 0: a group."""
        self._alone_with = alone_with
        self._servers = servers
        self._instance = instance
        self._access = access
        self._outbox = outbox
        self._telemetry = telemetry
        self._note = note
        self._topics: frozenset[str] = frozenset()
        self.taken = 0

    async def run(self) -> None:
        """Until it is cancelled; whatever the broker does, it begins again at the commit."""
        while True:
            try:
                await self._consume()
            except (KafkaError, OSError, Refusal) as error:
                log.warning("ingress starts again", extra={"reason": repr(error)[:200]})
            await asyncio.sleep(RETRY_S)

    async def _consume(self) -> None:
        consumer = self._consumer()
        await consumer.start()
        self._topics = frozenset()
        try:
            while True:
                if not await self._subscribed(consumer):
                    await asyncio.sleep(REFRESH_S)
                    continue
                await self._take(consumer)
        finally:
            await consumer.stop()

    async def _take(self, consumer: AIOKafkaConsumer) -> None:
        """Reads for one refresh interval, then looks for new tenants again."""
        ends = asyncio.get_running_loop().time() + REFRESH_S
        while asyncio.get_running_loop().time() < ends:
            found = await consumer.getmany(timeout_ms=POLL_MS, max_records=MAX_RECORDS)
            if found:
                await self._forward([record for records in found.values() for record in records])
                await self._commit(consumer, found)

    async def _subscribed(self, consumer: AIOKafkaConsumer) -> bool:
        there = await consumer.topics()
        known = {PREFIX + tenant for tenant in self._access.view.tenants}
        topics = frozenset(known & set(there))
        if topics != self._topics and topics:
            self._follow(consumer, topics)
            self._topics = topics
        return bool(self._topics)

    def _follow(self, consumer: AIOKafkaConsumer, topics: frozenset[str]) -> None:
        if not self._alone_with:
            consumer.subscribe(sorted(topics))
            return
        lanes = range(self._alone_with)
        consumer.assign([TopicPartition(topic, lane) for topic in sorted(topics) for lane in lanes])

    async def _forward(self, records: Sequence[ConsumerRecord]) -> None:
        """All of them are on their way before the first is waited for; their order is kept."""
        acks: list[Ack] = []
        with ExitStack() as spans:
            for record in records:
                acks.append(await self._post(record, spans))
            await self._outbox.acknowledged(acks)
        self.taken += len(acks)
        self._telemetry.metrics.inputs.labels("submissions").inc(len(acks))

    async def _post(self, record: ConsumerRecord, spans: ExitStack) -> Ack:
        tenant = record.topic.removeprefix(PREFIX)
        made = parcel(
            Arrived(record.topic, record.partition, record.offset, record.value),
            self._access.sender(tenant), self._access.pools(), self._access.view.is_active(tenant),
        )  # fmt: skip
        span = spans.enter_context(
            self._telemetry.spans.span("submit", made.traceparent, _attributes(made, tenant))
        )
        if isinstance(made.command, SubmitJob):
            span.set("job.id", made.subject)
            self._note(made.subject, tenant, made.lane)
        letter = Letter(made.id, made.command, made.subject, tenant, made.pool, span.traceparent)
        return await self._outbox.post(TOPIC, made.lane, letter)

    async def _commit(
        self, consumer: AIOKafkaConsumer, found: dict[TopicPartition, Sequence[ConsumerRecord]]
    ) -> None:
        try:
            await consumer.commit({tp: records[-1].offset + 1 for tp, records in found.items()})
        except CommitFailedError:
            # The group moved on meanwhile: somebody repeats these records, under the same ids.
            log.info("a commit came too late")

    def _consumer(self) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            bootstrap_servers=self._servers,
            client_id="berth-gateway",
            group_id=GROUP,
            group_instance_id=self._instance or None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
            metadata_max_age_ms=5_000,
        )


def _attributes(made: Parcel, tenant: str) -> dict[AttributeKey, str]:
    return {"tenant.id": tenant, "pool.id": made.pool, "messaging.destination.name": TOPIC}

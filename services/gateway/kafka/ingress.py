"""Kafka ingress: turns the records of tenants' topics into commands; no record stops it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from time import monotonic, monotonic_ns
from typing import TypeAlias

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import CommitFailedError, KafkaError

from services.gateway.access import AccessDirectory
from services.gateway.core.named_secrets import known_secrets
from services.gateway.kafka.inbound import PREFIX, RoutedCommand, SubmissionRecord, route_submission
from services.gateway.kafka.inbound_requests import PREFIX as REQUESTS
from services.gateway.kafka.inbound_requests import route_request
from services.gateway.kafka.outbox import Ack, Outbox, OutgoingCommand
from services.gateway.kafka.progress import ConsumerProgress
from services.gateway.responses.problem import ApiError
from shared.bus.failpoints import FAILPOINTS
from shared.bus.logs.stop_client import STOP_S, stop_client
from shared.contracts.job_commands import RejectSubmission, SubmitJob
from shared.contracts.secrets import REFERENCE
from shared.http.rate import Rate, TokenBuckets
from shared.ledger.errors import Stalled
from shared.process.connection import Connection
from shared.telemetry.figures import Figure
from shared.telemetry.names import AttributeKey, SpanName
from shared.telemetry.setup import Telemetry

GROUP = "berth-gateway"
REFRESH_S = 1.0
RETRY_S = 0.5
MAX_RETRY_S = 5.0
TURN_TIMEOUT_S = 60.0
"""Limit of one turn of the loop; longer than any request to the broker may take."""
MAX_RECORDS = 500
SUBMISSIONS = ("submissions", "all")
"""Labels of the lag metric: one series for the topics of all tenants."""
KAFKA = "kafka:"
"""Begins the principal of who submits as an event: the broker knows the tenant alone."""
POLL_MS = 200
LIMITED_POLL_MS = 50
"""Poll interval while a tenant has exceeded its rate."""

NAMES_A_SECRET = REFERENCE.encode()

Records: TypeAlias = dict[TopicPartition, Sequence[ConsumerRecord]]

log = logging.getLogger(__name__)


class Ingress:
    """Commits offsets after the commands are acknowledged: a crash repeats records, loses none."""

    def __init__(
        self,
        connection: Connection,
        instance: str,
        access: AccessDirectory,
        outbox: Outbox,
        telemetry: Telemetry,
        note: Callable[[SubmitJob, int], None],
        rate: Rate,
        *,
        alone_with: int = 0,
    ) -> None:
        """Records of each tenant are consumed at `rate`; the rest stays in the tenant's topic.

        `alone_with` is the number of partitions per topic if no other gateway shares the work:
        then no group has to form, which takes the embedded broker 6 s for each new tenant.
        Offsets are committed all the same. With 0 the consumer joins a group.
        """
        self._buckets = TokenBuckets(rate)
        self._max_records = min(MAX_RECORDS, rate.burst)
        self._limited: set[str] = set()
        """Topics whose buckets were empty at the last poll."""
        self._alone_with = alone_with
        self._connection = connection
        self._instance = instance
        self._access = access
        self._outbox = outbox
        self._telemetry = telemetry
        self._note = note
        self._topics: frozenset[str] = frozenset()
        self._turn_began_s = 0.0
        self.consumed = 0

    async def run(self) -> None:
        """Consume until cancelled; after any failure of the broker resume at the commit."""
        pause_s, logged = RETRY_S, ""
        while True:
            before = self.consumed
            reason = await self._session()
            if self.consumed > before:
                pause_s, logged = RETRY_S, ""
            if reason != logged:
                log.warning("ingress restarts", extra={"reason": reason})
            logged = reason
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_RETRY_S)

    async def _session(self) -> str:
        """Consume in a task of its own and return the reason of its end.

        A consumer with a dead part raises CancelledError, and one that lost its broker may block
        for ever: neither may end this task.
        """
        self._turn_began_s = monotonic()
        session = asyncio.ensure_future(self._consume())
        try:
            while not session.done() and monotonic() - self._turn_began_s < TURN_TIMEOUT_S:
                await asyncio.wait({session}, timeout=REFRESH_S)
        finally:
            stuck = session.cancel()
            await asyncio.wait({session}, timeout=3 * STOP_S)
        if stuck or session.cancelled():
            return "the Kafka client is stuck" if stuck else "the Kafka client ended"
        error = session.exception()
        if not isinstance(error, KafkaError | OSError | ApiError | Stalled):
            raise error or RuntimeError("a session ended without a reason")
        return repr(error)[:200]

    async def _consume(self) -> None:
        consumer, progress = self._consumer(), ConsumerProgress()
        self._topics = frozenset()
        try:
            await consumer.start()
            while True:
                self._turn_began_s = monotonic()
                if not await self._subscribed(consumer):
                    await asyncio.sleep(REFRESH_S)
                    continue
                await self._consume_interval(consumer)
                await progress.check(consumer, self._topics, self._limited)
                lag = Figure("berth_consumer_lag_records", progress.behind, SUBMISSIONS)
                self._telemetry.metrics.show([lag])
        finally:
            await stop_client(consumer)

    async def _consume_interval(self, consumer: AIOKafkaConsumer) -> None:
        """Consume for one refresh interval; then new tenants are looked up."""
        ends = asyncio.get_running_loop().time() + REFRESH_S
        while asyncio.get_running_loop().time() < ends:
            polled = await self._poll(consumer)
            if polled:
                self._spend(polled)
                await self._forward([record for records in polled.values() for record in records])
                FAILPOINTS.hit("after_forward")
                await self._commit(consumer, polled)

    async def _poll(self, consumer: AIOKafkaConsumer) -> Records:
        """Return records of the tenants that have not exceeded their rate."""
        now_ns = monotonic_ns()
        self._limited = {topic for topic in self._limited if self._buckets.wait_ns(topic, now_ns)}
        if not self._limited:
            return await self._getmany(consumer, POLL_MS)
        began_s = monotonic()
        polled: Records = {}
        if others := [tp for tp in consumer.assignment() if tp.topic not in self._limited]:
            polled = await self._getmany(consumer, LIMITED_POLL_MS, *others)
        else:
            await asyncio.sleep(LIMITED_POLL_MS / 1000)
        for topic in self._limited:
            held_s = self._telemetry.metrics.submissions_held_s.labels(tenant_of(topic))
            held_s.inc(monotonic() - began_s)
        return polled

    async def _getmany(
        self, consumer: AIOKafkaConsumer, wait_ms: int, *partitions: TopicPartition
    ) -> Records:
        polled: Records = await consumer.getmany(
            *partitions, timeout_ms=wait_ms, max_records=self._max_records
        )
        return polled

    def _spend(self, polled: Records) -> None:
        now_ns = monotonic_ns()
        for tp, records in polled.items():
            self._buckets.spend(tp.topic, now_ns, len(records))
            if self._buckets.wait_ns(tp.topic, now_ns):
                self._limited.add(tp.topic)

    async def _subscribed(self, consumer: AIOKafkaConsumer) -> bool:
        existing = await consumer.topics()
        tenants = self._access.view.tenants
        expected = {prefix + tenant for prefix in (PREFIX, REQUESTS) for tenant in tenants}
        topics = frozenset(expected & set(existing))
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
        """Queue all commands in order, then wait for their acknowledgements."""
        acks: list[Ack] = []
        with ExitStack() as spans:
            for record in records:
                acks.append(await self._queue(record, spans))
            await self._outbox.wait_acknowledged(acks)
        self.consumed += len(acks)
        self._telemetry.metrics.inputs.labels("submissions").inc(len(acks))

    async def _queue(self, record: ConsumerRecord, spans: ExitStack) -> Ack:
        tenant = tenant_of(record.topic)
        routed = await self._route(record, tenant)
        name: SpanName = "llm" if record.topic.startswith(REQUESTS) else "submit"
        span = spans.enter_context(
            self._telemetry.spans.span(name, routed.traceparent, _attributes(routed, tenant))
        )
        if isinstance(routed.command, SubmitJob):
            span.set("job.id", routed.subject)
            self._note(routed.command, routed.lane)
        command = OutgoingCommand(
            routed.id,
            routed.command,
            routed.subject,
            tenant,
            routed.pool,
            span.traceparent,
            principal=KAFKA + tenant if isinstance(routed.command, SubmitJob) else "",
            access_next=self._access.next,
        )
        return await self._outbox.post(routed.topic, routed.lane, command)

    async def _route(self, record: ConsumerRecord, tenant: str) -> RoutedCommand:
        value = SubmissionRecord(record.topic, record.partition, record.offset, record.value)
        sender, view = self._access.sender(tenant), self._access.view
        if record.topic.startswith(REQUESTS):
            return route_request(value, sender, view)
        pools, is_active = self._access.pools(), view.is_active(tenant)
        secrets = known_secrets(view, tenant)
        routed = route_submission(value, sender, pools, is_active, secrets, view.pools)
        if isinstance(routed.command, RejectSubmission) and NAMES_A_SECRET in (record.value or b""):
            # It may have been set a moment ago; without the end of `access` the executor decides.
            is_read = await self._access.catch_up()
            secrets = known_secrets(view, tenant) if is_read else None
            routed = route_submission(value, sender, pools, is_active, secrets, view.pools)
        return routed

    async def _commit(self, consumer: AIOKafkaConsumer, polled: Records) -> None:
        try:
            await consumer.commit({tp: records[-1].offset + 1 for tp, records in polled.items()})
        except CommitFailedError:
            # The group was rebalanced: another member repeats these records under the same ids.
            log.info("commit failed after a rebalance")

    def _consumer(self) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            **self._connection.aiokafka(),
            client_id="berth-gateway",
            group_id=GROUP,
            group_instance_id=self._instance or None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
            metadata_max_age_ms=5_000,
        )


def _attributes(routed: RoutedCommand, tenant: str) -> dict[AttributeKey, str]:
    return {"tenant.id": tenant, "pool.id": routed.pool, "messaging.destination.name": routed.topic}


def tenant_of(topic: str) -> str:
    """Return the tenant that owns the topic."""
    return topic.split(".", 1)[1]

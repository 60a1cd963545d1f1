"""Kafka ingress: what tenants write to their own topics becomes commands; never stops for one."""

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
from services.gateway.core.rate import Rate, TokenBuckets
from services.gateway.inbound import PREFIX, RoutedCommand, SubmissionRecord, route_submission
from services.gateway.outbox import Ack, Outbox, OutgoingCommand
from services.gateway.problem import ApiError
from services.gateway.progress import ConsumerProgress
from shared.bus.failpoints import FAILPOINTS
from shared.bus.stop_client import STOP_S, stop_client
from shared.connection import Connection
from shared.contracts.jobs import SubmitJob
from shared.ledger.errors import Stalled
from shared.telemetry.figures import Figure
from shared.telemetry.names import AttributeKey
from shared.telemetry.setup import Telemetry

GROUP = "berth-gateway"
TOPIC = "commands"
REFRESH_S = 1.0
RETRY_S = 0.5
LONGEST_RETRY_S = 5.0
TURN_S = 60.0
"""For one look at what tenants sent; longer than any request to the broker may take."""
MAX_RECORDS = 500
SUBMISSIONS = ("submissions", "all")
"""Labels of the lag: one series for the topics of all tenants."""
POLL_MS = 200
SPENT_POLL_MS = 50
"""While somebody waits for room."""

Found: TypeAlias = dict[TopicPartition, Sequence[ConsumerRecord]]

log = logging.getLogger(__name__)


class Ingress:
    """Offsets are committed after the commands are acknowledged: a crash repeats, never loses."""

    def __init__(
        self,
        connection: Connection,
        instance: str,
        access: AccessDirectory,
        outbox: Outbox,
        telemetry: Telemetry,
        note: Callable[[str, str, int], None],
        rate: Rate,
        *,
        alone_with: int = 0,
    ) -> None:
        """Of each tenant records are taken at `rate`; the others wait in its topic, where they are
        in nobody's way.

        `alone_with` partitions in each tenant's topic: no other gateway shares the work, so no
        group has to form, which takes the embedded broker 6 s, and again for each new tenant.
        Offsets are committed all the same. 0: a group."""
        self._buckets = TokenBuckets(rate)
        self._most = min(MAX_RECORDS, rate.burst)
        self._spent: set[str] = set()
        """Topics whose buckets were empty when they were last looked at."""
        self._alone_with = alone_with
        self._connection = connection
        self._instance = instance
        self._access = access
        self._outbox = outbox
        self._telemetry = telemetry
        self._note = note
        self._topics: frozenset[str] = frozenset()
        self._turned_s = 0.0
        self.taken = 0

    async def run(self) -> None:
        """Until it is cancelled; whatever the broker or its client does, it begins again at the
        commit."""
        pause_s, told = RETRY_S, ""
        while True:
            before = self.taken
            why = await self._session()
            if self.taken > before:
                pause_s, told = RETRY_S, ""
            if why != told:
                log.warning("ingress starts again", extra={"reason": why})
            told = why
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_RETRY_S)

    async def _session(self) -> str:
        """Why it is over. It runs as a task of its own: a consumer of which a part died raises
        CancelledError, and one that lost its broker may never answer; neither may end this one."""
        self._turned_s = monotonic()
        session = asyncio.ensure_future(self._consume())
        try:
            while not session.done() and monotonic() - self._turned_s < TURN_S:
                await asyncio.wait({session}, timeout=REFRESH_S)
        finally:
            stuck = session.cancel()
            await asyncio.wait({session}, timeout=3 * STOP_S)
        if stuck or session.cancelled():
            return "the client of the broker stands still" if stuck else "its client died"
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
                self._turned_s = monotonic()
                if not await self._subscribed(consumer):
                    await asyncio.sleep(REFRESH_S)
                    continue
                await self._take(consumer)
                await progress.check(consumer, self._topics, self._spent)
                lag = Figure("berth_consumer_lag_records", progress.behind, SUBMISSIONS)
                self._telemetry.metrics.show([lag])
        finally:
            await stop_client(consumer)

    async def _take(self, consumer: AIOKafkaConsumer) -> None:
        """Reads for one refresh interval, then looks for new tenants again."""
        ends = asyncio.get_running_loop().time() + REFRESH_S
        while asyncio.get_running_loop().time() < ends:
            found = await self._found(consumer)
            if found:
                self._spend(found)
                await self._forward([record for records in found.values() for record in records])
                FAILPOINTS.hit("after_forward")
                await self._commit(consumer, found)

    async def _found(self, consumer: AIOKafkaConsumer) -> Found:
        """Of those tenants that have not sent more than their rate."""
        now_ns = monotonic_ns()
        self._spent = {topic for topic in self._spent if self._buckets.wait_ns(topic, now_ns)}
        if not self._spent:
            return await self._getmany(consumer, POLL_MS)
        began_s = monotonic()
        found: Found = {}
        if others := [tp for tp in consumer.assignment() if tp.topic not in self._spent]:
            found = await self._getmany(consumer, SPENT_POLL_MS, *others)
        else:
            await asyncio.sleep(SPENT_POLL_MS / 1000)
        for topic in self._spent:
            held_s = self._telemetry.metrics.submissions_held_s.labels(topic.removeprefix(PREFIX))
            held_s.inc(monotonic() - began_s)
        return found

    async def _getmany(
        self, consumer: AIOKafkaConsumer, wait_ms: int, *of: TopicPartition
    ) -> Found:
        found: Found = await consumer.getmany(*of, timeout_ms=wait_ms, max_records=self._most)
        return found

    def _spend(self, found: Found) -> None:
        now_ns = monotonic_ns()
        for tp, records in found.items():
            self._buckets.spend(tp.topic, now_ns, len(records))
            if self._buckets.wait_ns(tp.topic, now_ns):
                self._spent.add(tp.topic)

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
        made = route_submission(
            SubmissionRecord(record.topic, record.partition, record.offset, record.value),
            self._access.sender(tenant),
            self._access.pools(),
            self._access.view.is_active(tenant),
        )
        span = spans.enter_context(
            self._telemetry.spans.span("submit", made.traceparent, _attributes(made, tenant))
        )
        if isinstance(made.command, SubmitJob):
            span.set("job.id", made.subject)
            self._note(made.subject, tenant, made.lane)
        letter = OutgoingCommand(
            made.id,
            made.command,
            made.subject,
            tenant,
            made.pool,
            span.traceparent,
            access_next=self._access.next,
        )
        return await self._outbox.post(TOPIC, made.lane, letter)

    async def _commit(self, consumer: AIOKafkaConsumer, found: Found) -> None:
        try:
            await consumer.commit({tp: records[-1].offset + 1 for tp, records in found.items()})
        except CommitFailedError:
            # The group moved on meanwhile: somebody repeats these records, under the same ids.
            log.info("a commit came too late")

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


def _attributes(made: RoutedCommand, tenant: str) -> dict[AttributeKey, str]:
    return {"tenant.id": tenant, "pool.id": made.pool, "messaging.destination.name": TOPIC}

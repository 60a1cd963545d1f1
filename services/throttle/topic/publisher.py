"""Writes answers to the topics of their tenants, at least once."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from aiokafka.errors import KafkaError

from services.throttle.topic.answers import MOST_BYTES, Answer, answer_record, refusal
from services.throttle.topic.files import AnswerFiles
from shared.bus.clock import now_ms
from shared.bus.logs.log import Headers
from shared.bus.logs.producer import TopicProducer
from shared.contracts.topics import tenant_answers
from shared.ledger.cloudevents import CONTENT_TYPE
from shared.ledger.errors import OutcomeUnknown

HEADERS = (("content-type", CONTENT_TYPE.encode()),)
ATTEMPTS = 3
PAUSE_S = 1.0
LISTED_S = 1.0
"""Minimum time between two listings of all topics."""

log = logging.getLogger(__name__)


class AnswerLog(Protocol):
    """The port through which answers are written."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def topics(self) -> dict[str, int]:
        """Return all topics with their number of partitions."""
        ...

    async def send(
        self, topic: str, partition: int, value: bytes, *, key: bytes, headers: Headers
    ) -> int:
        """Return the offset. Raises OutcomeUnknown."""
        ...


class KafkaAnswers(TopicProducer):
    """Writes answers to Kafka."""

    async def topics(self) -> dict[str, int]:
        metadata = await self._producer.client.fetch_all_metadata()
        return {
            topic: len(metadata.partitions_for_topic(topic) or ()) for topic in metadata.topics()
        }


class AnswerPublisher:
    """The answers of one lane; the client is started by the first."""

    def __init__(
        self, open_log: Callable[[], AnswerLog], lane: int, files: AnswerFiles | None
    ) -> None:
        self._open_log = open_log
        self._lane = lane
        self._files = files
        self._log: AnswerLog | None = None
        self._topics: dict[str, int] = {}
        self._listed_at = -LISTED_S
        self._turn = asyncio.Lock()

    async def has_topic(self, tenant: str) -> bool:
        """Return whether the tenant has a topic of answers; raises OutcomeUnknown."""
        topic = tenant_answers(tenant).name
        requested_at = time.monotonic()
        if topic not in self._topics:
            await asyncio.sleep(max(0.0, self._listed_at + LISTED_S - requested_at))
            try:
                async with self._turn:
                    if self._listed_at < requested_at:
                        await self._list()
            except (KafkaError, OSError) as error:
                raise OutcomeUnknown(f"{topic}: {error!r}") from error
        return self._topics.get(topic, 0) > 0

    async def publish(self, answer: Answer) -> bool:
        """Return whether the answer is acknowledged; what was tried in vain is logged."""
        answer = await self._by_reference(answer)
        for attempt in range(ATTEMPTS):
            try:
                if await self.has_topic(answer.to.tenant):
                    await self._send(answer)
                    return True
                reason = "tenant has no topic of answers"
                break
            except OutcomeUnknown as error:
                reason = str(error)[:200]
                if attempt + 1 < ATTEMPTS:
                    await asyncio.sleep(PAUSE_S)
        named = {"tenant": answer.to.tenant, "request": answer.to.request_id, "reason": reason}
        log.warning("answer not published", extra=named)
        return False

    async def close(self) -> None:
        if self._log is not None:
            await self._log.stop()

    async def _list(self) -> None:
        self._topics = await (await self._started()).topics()
        self._listed_at = time.monotonic()

    async def _send(self, answer: Answer) -> None:
        client, topic = await self._started(), tenant_answers(answer.to.tenant).name
        partition = self._lane % self._topics[topic]
        key = answer.to.request_id.encode()
        await client.send(
            topic, partition, answer_record(answer, now_ms()), key=key, headers=HEADERS
        )

    async def _by_reference(self, answer: Answer) -> Answer:
        """Return the answer as a record can hold it: a large body is in a file, or refused."""
        size = len(answer.body)
        if size <= MOST_BYTES:
            return answer
        if self._files is None:
            text = f"answer: {size} bytes; without a folder of answers {MOST_BYTES} are allowed"
            return refusal(answer.to, "answer_too_large", text)
        try:
            stored = await self._files.store(answer.to.tenant, answer.body)
        except OSError as error:
            log.warning("answer cannot be stored", extra={"reason": str(error.strerror)})
            return refusal(answer.to, "answer_not_stored", "answer: its file cannot be written")
        return replace(answer, body=b"", reference=stored)

    async def _started(self) -> AnswerLog:
        if self._log is None:
            client = self._open_log()
            try:
                await client.start()
            except BaseException:
                await client.stop()
                raise
            self._log = client
        return self._log

"""A tenant asks for LLM answers by events as itself alone; its mistakes stop no service."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from infra.broker import topics
from services.publisher.core.lane import Published
from services.publisher.dead_letters import DeadLetters
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.codec import encode_event
from shared.contracts.rejected import InputRejected
from shared.contracts.topics import tenant_topics
from shared.ledger.errors import Forbidden
from shared.ledger.partition import TP
from tests.infra.security.on_kafka.guarded_broker import MARKS, Guarded

pytestmark = MARKS


@pytest.fixture
async def ada(guarded: Guarded) -> KafkaLog:
    specs = [spec for tenant in ("ada", "ada.b") for spec in tenant_topics(tenant)]
    await asyncio.to_thread(topics.create, guarded.root, 1, False, specs)
    return KafkaLog(guarded.connection("tenant.ada"))


async def test_a_tenant_writes_its_own_requests_and_no_others(ada: KafkaLog) -> None:
    await ada.start()
    try:
        assert await ada.append(TP("requests.ada", 0), b"mine") >= 0
        for topic in ("requests.ada.b", "llm.requests", "answers.ada", "commands"):
            with pytest.raises(Forbidden, match="may not append"):
                await ada.append(TP(topic, 0), b"in the name of another")
    finally:
        await ada.stop()


async def test_a_record_that_is_unreadable_becomes_a_dead_letter(
    guarded: Guarded, ada: KafkaLog
) -> None:
    await ada.start()
    offset = await ada.append(TP("requests.ada", 0), b"no request")
    await ada.stop()
    publisher = KafkaLog(guarded.connection("publisher"))
    await publisher.start()
    letters = DeadLetters(publisher)
    rejected = InputRejected(
        topic="requests.ada",
        partition=0,
        offset=offset,
        reason="not JSON",
        sha256=hashlib.sha256(b"no request").hexdigest(),
        tenant="ada",
    )
    raw = encode_event(rejected)
    try:
        event = Published("admission/0/1/0", b"", raw, "", "ada", 1, b"", raw)
        assert (await letters.letter(event)).value == b"no request"
    finally:
        await letters.close()
        await publisher.stop()

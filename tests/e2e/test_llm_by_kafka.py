"""LLM requests by a tenant's own Kafka user: answered to it, and in no other tenant's name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.broker import kafka
from infra.supervisor.running import load
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.tail import TopicTail
from shared.ledger import cloudevents
from shared.ledger.errors import Forbidden
from shared.ledger.partition import TP
from shared.process.connection import Connection
from tests.e2e.engine import an_engine
from tests.e2e.test_kafka import berth, client_settings, data, stack_up
from tests.patience import PATIENCE_S

__all__ = ["data"]

pytestmark = [
    pytest.mark.parts,
    pytest.mark.stack,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]
MODEL = "org/Chat"
SECRET = "the-prompt-is-a-secret"


def request(request_id: str, **fields: object) -> bytes:
    body = {"max_tokens": 5, "messages": [{"role": "user", "content": SECRET}]}
    fields = {"request_id": request_id, "endpoint": MODEL, "body": body, **fields}
    return cloudevents.encode(
        id=request_id, source="/app", type="llm.serve.v1", data=json.dumps(fields).encode()
    )


async def append(tenant: Connection, topic: str, *values: bytes) -> None:
    log = KafkaLog(tenant, client="app")
    await log.start()
    try:
        for value in values:
            await log.append(TP(topic, 0), value)
    finally:
        await log.stop()


async def read_until(
    tenant: Connection, topic: str, lanes: int, is_due: Callable[[dict[str, Any]], bool], count: int
) -> dict[str, dict[str, Any]]:
    """Return so many records of a tenant's topic that are due, by their subject."""
    tail = TopicTail(KafkaLog(tenant, client="app"))
    await tail.start_at_begin([TP(topic, lane) for lane in range(lanes)])
    by_subject: dict[str, dict[str, Any]] = {}
    try:
        async with asyncio.timeout(PATIENCE_S):
            while len(by_subject) < count:
                for entries in (await tail.poll()).values():
                    events = [json.loads(entry.value or b"{}") for entry in entries]
                    by_subject |= {event["subject"]: event for event in events if is_due(event)}
    finally:
        await tail.stop()
    return by_subject


async def exchange(ada: Connection, lanes: int) -> None:
    requests = request("r1"), request("r2", endpoint="gone"), request("r3", tenant="bob")
    await append(ada, "requests.ada", *requests, b"no request")
    answers = await read_until(ada, "answers.ada", lanes, lambda _: True, 2)
    assert {name: answer["data"]["status"] for name, answer in answers.items()} == {
        "r1": 200,
        "r2": 404,
    }
    assert answers["r1"]["data"]["body"]["usage"]["completion_tokens"] == 5
    rejected = await read_until(
        ada, "events.ada", lanes, lambda event: event["type"] == "input.rejected.v1", 1
    )
    assert all("prompt" not in json.dumps(event) for event in rejected.values())
    for topic in ("requests.bob", "llm.requests", "answers.ada"):
        with pytest.raises(Forbidden):
            await append(ada, topic, request("r9"))


def test_a_tenant_is_answered_and_asks_in_no_other_name(data: Path) -> None:
    with stack_up(data), an_engine(MODEL, data / "engine.log") as url:
        for tenant in ("ada", "bob"):
            berth(data, "tenants", "add", tenant, "--pool", "virtual")
        berth(data, "endpoints", "create", MODEL, "--upstream", f"a={url}")
        asyncio.run(exchange(client_settings(data, "ada"), load(data).partitions))
        assert berth(data, "verify", "--json")["violations"] == []
        logs = [path.read_text(errors="replace") for path in (data / "logs").iterdir()]
        assert not any(SECRET in text for text in logs)

"""The throttle as a process on the embedded broker: a killed one leaves no request unanswered."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from infra.machine.process import Running, spawn
from shared.bus.logs.log import Entry
from shared.contracts.access import TenantRegistered
from shared.contracts.endpoints import EndpointConfigured, Upstream
from shared.contracts.topics import tenant_answers
from shared.ledger.partition import TP
from shared.process.connection import Connection
from tests.broker_clients import log_of
from tests.embedded_broker import embedded_broker
from tests.harness.ledger import accepted
from tests.patience import PATIENCE_S
from tests.services.throttle.proxy.test_serve import LONG, engine
from tests.services.throttle.shell import LEDGER, MODEL, REQUESTS, ThrottleStack, chat

pytestmark = pytest.mark.process

ACCESS, ANSWERS = TP("access", 0), TP("answers.acme", 0)


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[str]:
    with embedded_broker(tmp_path, 1, tenant_answers("acme")) as address:
        yield address


def throttle(kafka: str, tmp_path: Path) -> Running:
    env = {
        "PATH": os.environ["PATH"],
        "BERTH_KAFKA": kafka,
        "BERTH_DATA": str(tmp_path),
        "BERTH_PARTITIONS": "1",
        "BERTH_IDEMPOTENT": "0",
    }
    command = [sys.executable, "-m", "services.throttle"]
    return spawn("throttle", command, tmp_path / "throttle.log", env)


class Records:
    """Reads and writes the topics of a broker."""

    def __init__(self, kafka: str) -> None:
        self._log = log_of(Connection(kafka, idempotent=False))

    async def close(self) -> None:
        await self._log.stop()

    async def copy(self, stack: ThrottleStack, tp: TP, start: int = 0) -> None:
        """Append what the in-memory twin has in that partition."""
        for entry in stack.broker.entries(tp)[start:]:
            await self._log.append(tp, entry.value or b"")

    async def read(self, tp: TP) -> list[Entry]:
        feed = await self._log.feed({tp: 0}, lossy=True)
        entries: list[Entry] = []
        try:
            while polled := await feed.poll(0.5, 5000):
                entries.extend(polled[tp])
        finally:
            await feed.close()
        return entries

    async def answers(self) -> dict[str, Any]:
        """Return the answers by request; the first to each counts."""
        data = [json.loads(e.value or b"")["data"] for e in reversed(await self.read(ANSWERS))]
        return {answer["request_id"]: answer for answer in data}

    async def outcomes(self) -> dict[str, Any]:
        records = accepted(LEDGER, await self.read(LEDGER))
        events = [raw for record in records for raw in record.raw()]
        ends = [json.loads(bytes(e.data)) for e in events if e.type == "llm.finished.v1"]
        return {end["request_id"]: end["outcome"] for end in ends}


async def runs(url: str, requests: int) -> None:
    """Wait until the engine runs that many requests."""
    async with aiohttp.ClientSession() as client, asyncio.timeout(PATIENCE_S):
        while True:
            async with client.get(f"{url}/metrics") as response:
                lines = (await response.text()).splitlines()
            if any("num_requests_running{" in x and x.endswith(f" {requests}.0") for x in lines):
                return
            await asyncio.sleep(0.1)


async def test_a_killed_process_answers_what_ran_as_lost_and_serves_what_waited(
    kafka: str, tmp_path: Path
) -> None:
    async with engine(speed=20.0) as (_, url):
        stack, records = ThrottleStack(tmp_path, url), Records(kafka)
        upstream = Upstream(name="e0", url=url, max_requests=1)
        stack.access(
            EndpointConfigured(endpoint=MODEL, partition=0, upstreams=(upstream,)),
            TenantRegistered(tenant="acme", default_pool="main"),
        )
        await records.copy(stack, ACCESS)
        stack.request("runs", chat(LONG))
        stack.request("waits", chat(5))
        await records.copy(stack, REQUESTS)
        first = throttle(kafka, tmp_path)
        await runs(url, 1)
        os.kill(first.pid, signal.SIGKILL)
        first.stop()
        second = throttle(kafka, tmp_path)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while len(await records.outcomes()) < 2:
                    await asyncio.sleep(0.2)
            answers, outcomes = await records.answers(), await records.outcomes()
        finally:
            second.stop()
            await records.close()
    assert outcomes == {"runs": "lost", "waits": "completed"}
    assert (answers["runs"]["status"], answers["runs"]["reason"]) == (503, "lost")
    assert answers["waits"]["body"]["usage"]["completion_tokens"] == 5

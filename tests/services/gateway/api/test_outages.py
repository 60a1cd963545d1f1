"""Without Postgres commands go on; without Kafka each is refused within seconds."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from services.gateway.kafka.outbox import ACK_TIMEOUT_S, QUEUE_TIMEOUT_S
from shared.contracts.identity import derive_command_id
from shared.ledger import cloudevents
from tests.patience import PATIENCE_S
from tests.services.gateway.stack import Stack, fill_access, ready, start_broker, start_gateway

pytestmark = pytest.mark.process

JOB = {"name": "train"}


async def test_without_postgres_commands_go_on_and_reads_wait(stack: Stack, tmp_path: Path) -> None:
    gone = f"postgresql://berth@/berth?host={tmp_path}"
    running, url = start_gateway(tmp_path, stack.kafka, gone)
    try:
        await ready(url)
        alone = Stack(stack.kafka, url, gone, tmp_path, stack.ledgers, stack.broker)
        for path in ("/v1/jobs", "/v1/jobs/j", "/v1/nodes", "/v1/queue", "/v1/commands/c"):
            status, content, headers = await alone.call("GET", path, once=True)
            assert (status, content["reason"]) == (503, "reads_unavailable")
            assert int(headers["Retry-After"]) > 0
        status, job, _ = await alone.call("POST", "/v1/jobs", JOB)
        assert status == 202
        assert (await alone.call("DELETE", f"/v1/jobs/{job['job_id']}"))[0] == 202
        assert (await alone.call("DELETE", "/v1/jobs/of-another-day"))[0] == 202
        unknown = await alone.call("DELETE", "/v1/jobs/of-another-day", key="op", once=True)
        assert unknown[0] == 503
        for path in ("/health", "/ready"):
            assert (await alone.call("GET", path, key=""))[0] == 200
    finally:
        running.stop()


async def test_a_broker_that_stops_answering_is_a_503_within_five_seconds(tmp_path: Path) -> None:
    broker, kafka = await asyncio.to_thread(start_broker, tmp_path)
    ledgers = await fill_access(kafka)
    running, url = start_gateway(tmp_path, kafka, "")
    try:
        await ready(url)
        alone = Stack(kafka, url, "", tmp_path, ledgers, broker)
        os.kill(broker.pid, signal.SIGSTOP)
        assert QUEUE_TIMEOUT_S + ACK_TIMEOUT_S < 5, "its limits for an append"
        async with asyncio.timeout(PATIENCE_S):
            calls = (alone.call("POST", "/v1/jobs", JOB, once=True) for _ in range(20))
            answers = await asyncio.gather(*calls)
        for status, content, headers in answers:
            assert (status, content["reason"]) == (503, "broker_unavailable")
            assert int(headers["Retry-After"]) > 0
        async with asyncio.timeout(PATIENCE_S):
            while (await alone.call("GET", "/ready", key="", once=True))[0] != 503:
                await asyncio.sleep(0.1)
        assert (await alone.call("GET", "/health", key=""))[0] == 200
        os.kill(broker.pid, signal.SIGCONT)
        await ready(url)
        assert (await alone.call("POST", "/v1/jobs", JOB))[0] == 202
    finally:
        os.kill(broker.pid, signal.SIGCONT)
        running.stop()
        broker.stop()


async def test_a_gateway_without_a_broker_is_alive_and_reports_that_it_starts(
    tmp_path: Path,
) -> None:
    running, url = start_gateway(tmp_path, "127.0.0.1:9", "")
    try:
        alone = Stack("", url, "", tmp_path, None, running)  # type: ignore[arg-type]
        assert (await alone.call("GET", "/health", key=""))[0] == 200
        assert (await alone.call("GET", "/ready", key="", once=True))[0] == 503
        status, content, _ = await alone.call("POST", "/v1/jobs", JOB, once=True)
        assert (status, content["reason"]) == (503, "starting")
    finally:
        running.stop()


async def test_a_killed_gateway_loses_no_submission_and_repeats_only_the_same_command(
    tmp_path: Path,
) -> None:
    broker, kafka = await asyncio.to_thread(start_broker, tmp_path)
    ledgers = await fill_access(kafka)
    me = {"BERTH_INSTANCE": "gateway-0"}
    running, url = start_gateway(tmp_path, kafka, "", **me)
    alone = Stack(kafka, url, "", tmp_path, ledgers, broker)
    try:
        await ready(url)
        for start in (0, 300):
            writing = asyncio.create_task(write_submissions(alone, start, 300))
            await asyncio.sleep(0.4)
            os.kill(running.pid, signal.SIGKILL)
            running.stop()
            running, alone.url = start_gateway(tmp_path, kafka, "", **me)
            await writing
        written = len(await alone.read("submissions.ada", 0))
        assert written >= 600
        expected = {derive_command_id("submissions.ada", 0, n) for n in range(written)}
        async with asyncio.timeout(PATIENCE_S):
            while set(bodies_by_id := await commands(alone)) != expected:
                await asyncio.sleep(0.2)
        assert all(len(same) == 1 for same in bodies_by_id.values())
    finally:
        running.stop()
        broker.stop()


async def write_submissions(stack: Stack, start: int, count: int) -> None:
    records = (
        cloudevents.encode(id=f"w{n}", source="/ada", type="job.submit.v1", data=b'{"name": "x"}')
        for n in range(start, start + count)
    )
    await stack.put("submissions.ada", 0, *records)


async def commands(stack: Stack) -> dict[str, set[str]]:
    """Return the distinct bodies of each command id; more than one would be an error."""
    bodies_by_id: dict[str, set[str]] = {}
    for entry in await stack.read("commands", 1):
        content = json.loads(entry.value or b"")
        bodies_by_id.setdefault(content["id"], set()).add(json.dumps(content["data"]))
    return bodies_by_id

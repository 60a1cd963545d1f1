"""Postgres away: commands go on. Kafka away: nothing is acknowledged, and it is said in time."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

from tests.services.gateway.stack import Stack, fill_access, ready, start_broker, start_gateway

JOB = {"name": "train"}


async def test_without_postgres_commands_go_on_and_reads_wait(stack: Stack, tmp_path: Path) -> None:
    gone = f"postgresql://berth@/berth?host={tmp_path}"
    running, url = start_gateway(tmp_path, stack.kafka, gone)
    try:
        await ready(url)
        alone = Stack(stack.kafka, url, gone, tmp_path, stack.ledgers, stack.broker)
        for path in ("/v1/jobs", "/v1/jobs/j", "/v1/nodes", "/v1/queue", "/v1/commands/c"):
            status, said, headers = await alone.call("GET", path)
            assert (status, said["reason"]) == (503, "reads_unavailable")
            assert int(headers["Retry-After"]) > 0
        status, job, _ = await alone.call("POST", "/v1/jobs", JOB)
        assert status == 202
        assert (await alone.call("DELETE", f"/v1/jobs/{job['job_id']}"))[0] == 202
        assert (await alone.call("DELETE", "/v1/jobs/of-another-day"))[0] == 202
        assert (await alone.call("DELETE", "/v1/jobs/of-another-day", key="op"))[0] == 503
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
        began = time.monotonic()
        answers = await asyncio.gather(*(alone.call("POST", "/v1/jobs", JOB) for _ in range(20)))
        assert time.monotonic() - began < 5
        for status, said, headers in answers:
            assert (status, said["reason"]) == (503, "broker_unavailable")
            assert int(headers["Retry-After"]) > 0
        await asyncio.sleep(3)
        assert (await alone.call("GET", "/ready", key=""))[0] == 503
        assert (await alone.call("GET", "/health", key=""))[0] == 200
        os.kill(broker.pid, signal.SIGCONT)
        await ready(url)
        assert (await alone.call("POST", "/v1/jobs", JOB))[0] == 202
    finally:
        os.kill(broker.pid, signal.SIGCONT)
        running.stop()
        broker.stop()


async def test_a_gateway_without_a_broker_is_alive_and_says_what_it_lacks(tmp_path: Path) -> None:
    running, url = start_gateway(tmp_path, "127.0.0.1:9", "")
    try:
        alone = Stack("", url, "", tmp_path, None, running)  # type: ignore[arg-type]
        assert (await alone.call("GET", "/health", key=""))[0] == 200
        assert (await alone.call("GET", "/ready", key=""))[0] == 503
        status, said, _ = await alone.call("POST", "/v1/jobs", JOB)
        assert (status, said["reason"]) == (503, "starting")
    finally:
        running.stop()

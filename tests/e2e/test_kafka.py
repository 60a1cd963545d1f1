"""The stack on Apache Kafka: jobs by event, and everything is still there after a stop."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from infra import kafka
from infra.running import load
from shared.bus import cloudevents
from shared.bus.kafka import KafkaLog
from shared.bus.log import TP

pytestmark = [
    pytest.mark.stack,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]
TENANT = "ada"


def berth(data: Path, *words: str, timeout_s: float = 120) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "services.cli", *words, "--data", str(data)],
        capture_output=True, text=True, timeout=timeout_s, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (words, done.stderr, done.stdout)
    return json.loads(done.stdout) if "--json" in words else done.stdout


@contextmanager
def stack_up(data: Path) -> Iterator[None]:
    berth(data, "up", "--broker", "kafka", "--detach")
    try:
        yield
    finally:
        berth(data, "down")


def publish(data: Path, key: str) -> None:
    """A tenant's own producer, with nothing of the gateway."""
    job = {"name": key, "gang": {"gpus_per_worker": 2}, "simulated": {"duration_s": 0.5}}
    body = json.dumps({"idempotency_key": key, "spec": job}).encode()
    value = cloudevents.encode(id=key, source="/ada", type="job.submit.v1", data=body)

    async def send() -> None:
        log = KafkaLog(load(data).connection("operator"), client=TENANT)
        await log.start()
        await log.append(TP(f"submissions.{TENANT}", 0), value)
        await log.stop()

    asyncio.run(send())


def phases(data: Path) -> dict[str, str]:
    found = berth(data, "jobs", "--json")
    rows = found if isinstance(found, list) else found["jobs"]
    return {row["name"]: row["phase"] for row in rows}


def until(data: Path, expected: dict[str, str], within_s: float = 60) -> None:
    ends = time.monotonic() + within_s
    while (found := phases(data)) != expected:
        assert time.monotonic() < ends, found
        time.sleep(0.5)


def test_jobs_by_event_outlive_a_stop_of_everything() -> None:
    with tempfile.TemporaryDirectory(prefix="berth-k-", ignore_cleanup_errors=True) as name:
        data = Path(name)
        data.chmod(0o755)
        with stack_up(data):
            berth(data, "tenants", "add", TENANT, "--pool", "virtual")
            publish(data, "first")
            until(data, {"first": "succeeded"})
        with stack_up(data):
            assert phases(data) == {"first": "succeeded"}
            publish(data, "first")
            publish(data, "second")
            until(data, {"first": "succeeded", "second": "succeeded"})
            assert berth(data, "verify", "--json")["violations"] == []

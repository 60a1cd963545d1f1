"""The stack on Apache Kafka: jobs by event, and all is there after a stop of everything."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from typer.testing import CliRunner

from cli.main import app
from infra.broker import kafka
from infra.machine.owned_folders import scratch_folder
from infra.supervisor.running import load
from infra.supervisor.stack import SERVICES
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.tail import TopicTail
from shared.ledger import cloudevents
from shared.ledger.errors import Forbidden
from shared.ledger.partition import TP
from shared.process.connection import Connection
from tests.patience import PATIENCE_S

pytestmark = [
    pytest.mark.parts,
    pytest.mark.stack,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]
TENANT = "ada"
EVENT_TYPES = {"job.admitted.v1", "job.placed.v1", "job.succeeded.v1"}
T = TypeVar("T")


def berth(data: Path, *words: str) -> Any:
    """Run a command in this process: the commands between `up` and `down` start nothing."""
    done = CliRunner().invoke(app, [*words, "--data", str(data)])
    assert done.exit_code == 0, (words, done.output, done.exception)
    return json.loads(done.stdout) if "--json" in words else done.stdout


def run_berth(data: Path, *words: str, timeout_s: float = 600) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cli", *words, "--data", str(data)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, (words, done.stderr, done.stdout)


@contextmanager
def stack_up(data: Path) -> Iterator[None]:
    run_berth(data, "up", "--broker", "kafka", "--detach")
    try:
        yield
    finally:
        run_berth(data, "down")


def client_settings(data: Path, tenant: str = TENANT) -> Connection:
    """Return settings for a tenant's own programs; each call revokes the password of the last."""
    settings = berth(data, "tenants", "kafka-user", tenant, "--json")
    return Connection(
        settings["servers"],
        user=settings["user"],
        password=settings["password"],
        ca=Path(settings["ca"]),
    )


def publish(tenant: Connection, key: str, topic: str = f"submissions.{TENANT}") -> None:
    """Publish a job with a tenant's own producer, without the gateway."""
    job = {"name": key, "gang": {"gpus_per_worker": 2}, "simulated": {"duration_s": 0.5}}
    body = json.dumps({"idempotency_key": key, "spec": job}).encode()
    value = cloudevents.encode(id=key, source="/ada", type="job.submit.v1", data=body)

    async def send() -> None:
        log = KafkaLog(tenant, client=TENANT)
        await log.start()
        try:
            await log.append(TP(topic, 0), value)
        finally:
            await log.stop()

    asyncio.run(send())


def await_events(tenant: Connection, lanes: int, awaited: set[str]) -> None:
    """Read a tenant's events until all awaited types are read: each ledger is published in its
    order, and none waits for another."""

    async def read() -> None:
        tail = TopicTail(KafkaLog(tenant, client=TENANT))
        await tail.start_at_begin([TP(f"events.{TENANT}", lane) for lane in range(lanes)])
        types: set[str] = set()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not awaited <= types:
                    for entries in (await tail.poll()).values():
                        types |= {cloudevents.decode(entry.value).type for entry in entries}
        finally:
            await tail.stop()

    asyncio.run(read())


def phases(data: Path) -> dict[str, str]:
    listing = berth(data, "jobs", "--json")
    rows = listing if isinstance(listing, list) else listing["jobs"]
    return {row["name"]: row["phase"] for row in rows}


def until(data: Path, expected: dict[str, str]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while (current := phases(data)) != expected:
        assert time.monotonic() < ends, current
        time.sleep(0.5)


@pytest.fixture
def data() -> Iterator[Path]:
    """A folder that the users of tenants may enter."""
    with scratch_folder("k") as folder:
        yield folder


def test_jobs_by_event_outlive_a_stop_and_no_other_tenant_may_send_them(data: Path) -> None:
    with stack_up(data):
        berth(data, "tenants", "add", TENANT, "--pool", "virtual")
        ada = client_settings(data)
        publish(ada, "first")
        until(data, {"first": "succeeded"})
        await_events(ada, load(data).partitions, EVENT_TYPES)
        berth(data, "tenants", "add", "bob", "--pool", "virtual")
        with pytest.raises(Forbidden):
            publish(client_settings(data, "bob"), "stolen")
        with pytest.raises(Forbidden):
            publish(ada, "third", "commands")
    with stack_up(data):
        assert phases(data) == {"first": "succeeded"}
        # Addresses are new at each start; the user and its password are still known.
        ada = replace(ada, servers=load(data).kafka)
        publish(ada, "first")
        publish(ada, "second")
        until(data, {"first": "succeeded", "second": "succeeded"})
        berth(data, "tenants", "retire", TENANT)
        with pytest.raises(Forbidden):
            publish(ada, "third")
        assert berth(data, "verify", "--json")["violations"] == []
        _check_no_secret_is_shown(data)
    _check_log_lines(data)


def _check_log_lines(data: Path) -> None:
    """Each line of a service's log is JSON with a level, whichever library wrote it."""
    for service in SERVICES:
        lines = (data / "logs" / f"{service.name}.log").read_text().splitlines()
        bare = [line for line in lines if line and not line.startswith("{")]
        assert not bare, (service.name, bare)
        assert {"info"} <= {json.loads(line)["level"] for line in lines if line}, service.name


def _check_no_secret_is_shown(data: Path) -> None:
    """No secret is in a log, in a file of the stack or in the arguments of a process."""
    secrets = [path.read_text().strip() for path in (data / "secrets").glob("kafka_*")]
    arguments = [
        path.read_bytes().decode(errors="replace")
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.exists()
    ]
    logs = [path.read_text(errors="replace") for path in (data / "logs").iterdir()]
    plain = [data / "stack.json", data / "supervisord.conf"]
    texts = [*arguments, *logs, *(path.read_text() for path in plain)]
    assert len(secrets) >= 13
    assert not [secret for secret in secrets if any(secret in text for text in texts)]

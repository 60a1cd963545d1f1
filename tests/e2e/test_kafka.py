"""The stack on Apache Kafka: jobs and LLM requests by event, and all is there after a stop.

Tenants write by their own Kafka users, and in no other tenant's name.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from typer.testing import CliRunner

from cli.main import app
from infra.broker import kafka
from infra.machine.owned_folders import scratch_folder
from infra.supervisor import supervise
from infra.supervisor.running import load
from infra.supervisor.stack import SERVICES
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.tail import TopicTail
from shared.ledger import cloudevents
from shared.ledger.errors import Forbidden
from shared.ledger.partition import TP
from shared.process.connection import Connection
from tests.e2e.engine import an_engine
from tests.patience import PATIENCE_S

pytestmark = [
    pytest.mark.parts,
    pytest.mark.stack,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]
TENANT = "ada"
MODEL = "org/Chat"
PROMPT = "the-prompt-is-a-secret"
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


def start_stack(data: Path) -> None:
    run_berth(data, "up", "--broker", "kafka", "--detach")


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
    asyncio.run(append(tenant, topic, value))


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


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    """Data of a running stack with two tenants, in a folder that their users may enter."""
    with scratch_folder("k") as folder:
        try:
            start_stack(folder)
            for tenant in (TENANT, "bob"):
                berth(folder, "tenants", "add", tenant, "--pool", "virtual")
            yield folder
        finally:
            supervise.down(folder)


def request(request_id: str, **fields: object) -> bytes:
    body = {"max_tokens": 5, "messages": [{"role": "user", "content": PROMPT}]}
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


def test_llm_requests_are_answered_to_their_tenant_and_in_no_other_name(data: Path) -> None:
    with an_engine(MODEL, data / "engine.log") as url:
        berth(data, "endpoints", "create", MODEL, "--upstream", f"a={url}")
        asyncio.run(exchange(client_settings(data), load(data).partitions))
        assert berth(data, "verify", "--json")["violations"] == []
        logs = [path.read_text(errors="replace") for path in (data / "logs").iterdir()]
        assert not any(PROMPT in text for text in logs)


def test_jobs_by_event_outlive_a_stop_and_no_other_tenant_may_send_them(data: Path) -> None:
    ada = client_settings(data)
    publish(ada, "first")
    until(data, {"first": "succeeded"})
    await_events(ada, load(data).partitions, EVENT_TYPES)
    with pytest.raises(Forbidden):
        publish(client_settings(data, "bob"), "stolen")
    with pytest.raises(Forbidden):
        publish(ada, "third", "commands")
    run_berth(data, "down")
    start_stack(data)
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


def test_each_line_of_a_log_is_json_with_a_level_whichever_library_wrote_it(data: Path) -> None:
    run_berth(data, "down")
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

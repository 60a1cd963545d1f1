"""A whole stack of its own for the tests of one file, and what one does to it from outside."""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import msgspec

from cli.bring_up import LOCAL, VIRTUAL, open_up, with_nodes
from cli.machine import inventory
from cli.verifying import Verified, verified
from infra.supervisor import supervise
from infra.supervisor.running import RunningStack
from infra.supervisor.stack import SERVICES
from shared.bus.kafka import KafkaLog
from shared.bus.producer import TopicProducer
from shared.contracts.access import ConfigurePool
from shared.contracts.base import Model
from shared.contracts.codec import encode
from shared.contracts.identity import derive_job_id
from shared.contracts.jobs import JobSpec, SubmitJob
from shared.ledger import cloudevents
from shared.verify import reading

POOL, LOCAL_POOL = "virtual", "local"
POOLS = (ConfigurePool(pool=POOL), ConfigurePool(pool=LOCAL_POOL, backends=("process",)))
TENANTS = ("ada", "bob", "gone")
NODES = {
    "pool": POOL,
    "backend": "virtual",
    "nodes": [
        {"id": "a100-{0..3}", "count": 4, "gpu_type": "a100", "gpus": 8, "cpus": 96, "mem_gib": 768}
    ],
}
PROMPT_S = 90.0
"""Far above what a quiet machine needs; a job behind bad input would otherwise wait for ever."""
ENDS = ("succeeded", "failed", "cancelled", "rejected")

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(slots=True)
class Stand:
    """A running stack with one pool; `keys` opens the API for each tenant, and for `root`."""

    stack: RunningStack
    keys: dict[str, str]
    lane: int = 0
    sent: dict[tuple[str, int, int], bytes] = field(default_factory=dict)
    """Bytes of every record that somebody has to reject, by its place."""
    pids_at_start: dict[str, int] = field(default_factory=dict)

    def call(
        self, method: str, path: str, body: object = None, *, who: str = "root", key: str = ""
    ) -> tuple[int, Json]:
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        headers = {"Authorization": f"Bearer {self.keys[who]}", "Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        asked = urllib.request.Request(
            self.stack.gateway + path, None if body is None else raw, headers, method=method
        )
        try:
            with urllib.request.urlopen(asked, timeout=60, context=trust(self.stack)) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def get(self, path: str) -> Json | None:
        """None for what is not there, or not yet."""
        status, found = self.call("GET", path)
        return found if status == 200 else None

    def submit(self, *, who: str = "ada", key: str = "", **spec: object) -> Json:
        status, ticket = self.call("POST", "/v1/jobs", {"spec": a_spec(**spec)}, who=who, key=key)
        assert status == 202, ticket
        return ticket

    def publish(self, topic: str, partition: int, *values: bytes) -> list[int]:
        """Offsets, in the order of the values."""
        return asyncio.run(self._publish(topic, partition, values))

    async def _publish(self, topic: str, partition: int, values: tuple[bytes, ...]) -> list[int]:
        async with TopicProducer(self.stack.connection("operator")) as producer:
            posted = [await producer.post(topic, partition, value) for value in values]
            return [await each for each in posted]

    def bad(self, topic: str, lane: int, cases: Mapping[str, bytes]) -> dict[str, Json]:
        """Dead letters of all of these; behind each of them a good job succeeds."""
        goods = [str(uuid4()) for _ in cases]
        step = 2 if (behind := [each for key in goods if (each := _good(topic, key))]) else 1
        pairs = zip(cases.values(), behind, strict=True) if behind else zip(cases.values())
        values = [value for pair in pairs for value in pair]
        offsets = self.publish(topic, lane, *values)[::step]
        self.sent |= {(topic, lane, n): v for n, v in zip(offsets, cases.values(), strict=True)}
        self._all_succeed(topic, goods)
        return {
            case: eventually(lambda at=offset: self.dead(topic, lane, at))  # type: ignore[misc]
            for case, offset in zip(cases, offsets, strict=True)
        }

    def _all_succeed(self, topic: str, keys: list[str]) -> None:
        if not _good(topic, "x"):
            assert self.ended(self.submit()["job_id"])["phase"] == "succeeded"
            return
        for key in keys:
            assert self.ended(derive_job_id("ada", POOL, key))["phase"] == "succeeded"

    def dead(self, topic: str, partition: int, offset: int) -> Json | None:
        found = self.get("/v1/dead?limit=1000")
        place = (topic, partition, offset)
        rows = found["items"] if found else []
        return next(
            (r for r in rows if (r["topic"], r["partition"], r["log_offset"]) == place), None
        )

    def answer(self, command_id: str) -> Json:
        return eventually(lambda: self.get(f"/v1/commands/{command_id}"))

    def job(self, job_id: str) -> Json | None:
        return self.get(f"/v1/jobs/{job_id}")

    def ended(self, job_id: str, within_s: float = PROMPT_S) -> Json:
        return eventually(lambda: self._if_ended(job_id), within_s)

    def _if_ended(self, job_id: str) -> Json | None:
        row = self.job(job_id)
        return row if row and row["phase"] in ENDS else None

    def until(self, job_id: str, phase: str) -> Json:
        return eventually(
            lambda: row if (row := self.job(job_id)) and row["phase"] == phase else None
        )

    def pids(self) -> dict[str, int]:
        return {each.name: each.pid for each in supervise.status(self.stack.data_dir)}

    def verify(self) -> Verified:
        return verified(self.stack)

    def dead_topic(self) -> dict[tuple[str, int, int], str]:
        """Places of the dead letters, and the sha256 of the bytes that are kept of each."""
        log = KafkaLog(self.stack.connection("operator"), client="e2e")
        return asyncio.run(
            reading.read_dead_letters(reading.InstallationLog(log, self.stack.partitions))
        )


def trust(stack: RunningStack) -> ssl.SSLContext | None:
    """Whom to trust at its API and its LLM proxy; None where they speak plain HTTP."""
    return _trust(stack.ca) if stack.tls and stack.ca else None


@functools.cache
def _trust(ca: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca)


def _good(topic: str, key: str) -> bytes:
    """A good job as it lies in that topic; nothing where no jobs lie."""
    if topic == "commands":
        spec = JobSpec.model_validate(a_spec())
        job_id = derive_job_id("ada", POOL, key)
        return a_command(
            SubmitJob(job_id=job_id, tenant="ada", pool=POOL, idempotency_key=key, spec=spec)
        )
    return a_wish(key) if topic.startswith("submissions.") else b""


def eventually(what: Callable[[], T | None], within_s: float = PROMPT_S) -> T:
    """What it returns once that is true; asks ten times a second."""
    ends = time.monotonic() + within_s
    while not (found := what()):
        assert time.monotonic() < ends, "did not happen in time"
        time.sleep(0.1)
    return found


def a_spec(**changed: object) -> Json:
    return {"name": "job", "gang": {"workers": 1}, "simulated": {"duration_s": 0.05}} | changed


def a_wish(key: str, **changed: object) -> bytes:
    """A submission as a tenant would publish it."""
    return an_event({"idempotency_key": key, "spec": a_spec(**changed)}, id=key)


def an_event(data: object, type: str = "job.submit.v1", **envelope: object) -> bytes:
    """A CloudEvent with any field set, or overwritten by nonsense."""
    plain = {"specversion": "1.0", "id": str(uuid4()), "source": "/test", "type": type}
    return json.dumps({**plain, "data": data, **envelope}).encode()


def a_command(message: Model, id: str = "") -> bytes:
    """As the gateway would append it."""
    return cloudevents.encode(
        id=id or str(uuid4()),
        source="/test",
        type=str(getattr(message, "TYPE")),  # noqa: B009
        data=encode(message),
    )


@contextmanager
def a_stand(
    *without: str,
    nodes: Mapping[str, object] = NODES,
    env: Mapping[str, Mapping[str, str]] | None = None,
    tracing: bool = False,
    tls: bool = False,
) -> Iterator[Stand]:
    """Everything but the services named; a short path, as a unix socket's may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="berth-e2e-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        services = tuple(each for each in SERVICES if each.name not in without)
        options = supervise.StackOptions(
            data_dir=folder,
            services=services,
            foreground=True,
            env=env or {},
            tracing=tracing,
            tls=tls,
        )
        try:
            inventories = {VIRTUAL: nodes} | (
                {} if LOCAL in without else {LOCAL: inventory(LOCAL_POOL)}
            )
            stack = supervise.up(with_nodes(options, inventories))
            key = open_up(stack, POOLS, TENANTS)
            supervise.wait_ready(folder, tuple(each.name for each in services), 60)
            yield prepared(Stand(stack, {"root": key}))
        finally:
            supervise.down(folder)


def prepared(stand: Stand) -> Stand:
    """Tenants have keys, nodes have joined, and the ingress takes what is published."""
    for tenant in TENANTS:
        made = eventually(lambda tenant=tenant: _key(stand, tenant))  # type: ignore[misc]
        stand.keys[tenant] = made
    found = eventually(
        lambda: pools if (pools := stand.get("/v1/pools")) and pools["items"] else None
    )
    stand.lane = next(row["partition"] for row in found["items"] if row["pool"] == POOL)
    stand.publish("submissions.ada", 0, a_wish("first"))
    assert stand.ended(derive_job_id("ada", POOL, "first"), 60)["phase"] == "succeeded"
    return stand


def _key(stand: Stand, tenant: str) -> str | None:
    status, made = stand.call("POST", f"/v1/tenants/{tenant}/keys", {"role": "submitter"})
    if status != 202:
        return None
    assert stand.answer(made["command_id"])["accepted"]
    return str(made["key"])

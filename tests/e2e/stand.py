"""A whole stack for tests, and the calls, records and reads that drive it from outside."""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
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

from cli.stack.bring_up import VIRTUAL, open_up, with_nodes
from cli.stack.machine import local_node
from cli.stack.verification import Verified, verified
from infra.machine.owned_folders import scratch_folder
from infra.supervisor import supervise
from infra.supervisor.running import RunningStack
from infra.supervisor.stack import AGENT, SERVICES
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.base import Model
from shared.contracts.codec import encode
from shared.contracts.identity import derive_job_id
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import JobSpec
from shared.contracts.pools import ConfigurePool
from shared.ledger import cloudevents
from shared.verify import reading
from tests.broker_clients import producer_of
from tests.patience import PATIENCE_S

POOL, LOCAL_POOL = "virtual", "local"
POOLS = (ConfigurePool(pool=POOL), ConfigurePool(pool=LOCAL_POOL, backends=("agent",)))
TENANTS = ("ada", "bob", "gone")
NODES = {
    "pool": POOL,
    "backend": "virtual",
    "nodes": [
        {"id": "a100-{0..3}", "count": 4, "gpu_type": "a100", "gpus": 8, "cpus": 96, "mem_gib": 768}
    ],
}
ENDS = ("succeeded", "failed", "cancelled", "rejected")

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(slots=True)
class Stand:
    """A running stack with one pool; `keys` holds an API key of each tenant, and of `root`."""

    stack: RunningStack
    keys: dict[str, str]
    lane: int = 0
    sent: dict[tuple[str, int, int], bytes] = field(default_factory=dict)
    """Bytes of every record that must be rejected, by its place: topic, partition, offset."""
    pids_at_start: dict[str, int] = field(default_factory=dict)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        caller: str = "root",
        key: str = "",
        once: bool = False,
    ) -> tuple[int, Json]:
        """Return status and body of the answer.

        A 503 comes from a broker or a database that is too busy to answer in time: the request is
        made again, except `once`. A job has a key, so that it is submitted once all the same.
        A refused connection is one of a gateway that starts again, and is answered as 503 here.
        """
        if (method, path) == ("POST", "/v1/jobs") and "idempotency_key" not in _fields(body):
            key = key or str(uuid4())
        ends = time.monotonic() + PATIENCE_S
        while True:
            answer = self._call(method, path, body, caller, key)
            if once or answer[0] != 503:
                return answer
            assert time.monotonic() < ends, answer
            time.sleep(0.1)

    def _call(
        self, method: str, path: str, body: object, caller: str, key: str
    ) -> tuple[int, Json]:
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        headers = {
            "Authorization": f"Bearer {self.keys[caller]}",
            "Content-Type": "application/json",
        }
        if key:
            headers["Idempotency-Key"] = key
        request = urllib.request.Request(
            self.stack.gateway + path, None if body is None else raw, headers, method=method
        )
        try:
            with urllib.request.urlopen(
                request, timeout=PATIENCE_S, context=trust(self.stack)
            ) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            return 503, {"title": str(error)}

    def get(self, path: str) -> Json | None:
        """Return the body of the answer; None unless its status is 200."""
        status, body = self.call("GET", path)
        return body if status == 200 else None

    def submit(self, *, caller: str = "ada", key: str = "", **spec: object) -> Json:
        status, ticket = self.call(
            "POST", "/v1/jobs", {"spec": a_spec(**spec)}, caller=caller, key=key
        )
        assert status == 202, ticket
        return ticket

    def publish(self, topic: str, partition: int, *values: bytes) -> list[int]:
        """Publish the values; return their offsets, in the same order."""
        return asyncio.run(self._publish(topic, partition, values))

    async def _publish(self, topic: str, partition: int, values: tuple[bytes, ...]) -> list[int]:
        async with producer_of(self.stack.connection("operator")) as producer:
            posted = [await producer.post(topic, partition, value) for value in values]
            return [await offset for offset in posted]

    def bad(self, topic: str, lane: int, cases: Mapping[str, bytes]) -> dict[str, Json]:
        """Publish a good job behind each case; return the dead letters once all jobs succeeded."""
        goods = [str(uuid4()) for _ in cases]
        step = 2 if (behind := [job for key in goods if (job := _good(topic, key))]) else 1
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
        letters = self.get("/v1/dead?limit=1000")
        place = (topic, partition, offset)
        rows = letters["items"] if letters else []
        return next(
            (row for row in rows if (row["topic"], row["partition"], row["log_offset"]) == place),
            None,
        )

    def answer(self, command_id: str) -> Json:
        return eventually(lambda: self.get(f"/v1/commands/{command_id}"))

    def job(self, job_id: str) -> Json | None:
        return self.get(f"/v1/jobs/{job_id}")

    def ended(self, job_id: str, within_s: float = PATIENCE_S) -> Json:
        return eventually(lambda: self._if_ended(job_id), within_s)

    def _if_ended(self, job_id: str) -> Json | None:
        row = self.job(job_id)
        return row if row and row["phase"] in ENDS else None

    def rows(self, array: str, phase: str) -> list[Json]:
        """Return the rows of an array's jobs once all of them are in the phase."""
        return eventually(lambda: self._if_all(f"/v1/jobs?array={array}&limit=1000", phase))

    def _if_all(self, listing: str, phase: str) -> list[Json] | None:
        page = self.get(listing)
        rows = page["items"] if page else []
        return rows if rows and all(row["phase"] == phase for row in rows) else None

    def until(self, job_id: str, phase: str) -> Json:
        return eventually(
            lambda: row if (row := self.job(job_id)) and row["phase"] == phase else None
        )

    def pids(self) -> dict[str, int]:
        return {process.name: process.pid for process in supervise.status(self.stack.data_dir)}

    def verify(self) -> Verified:
        return verified(self.stack)

    def dead_topic(self) -> dict[tuple[str, int, int], str]:
        """Return the place of each dead letter and the SHA-256 of its bytes."""
        log = KafkaLog(self.stack.connection("operator"), client="e2e")
        return asyncio.run(
            reading.read_dead_letters(reading.InstallationLog(log, self.stack.partitions))
        )


def _fields(body: object) -> Mapping[str, object]:
    return body if isinstance(body, dict) else {}


def trust(stack: RunningStack) -> ssl.SSLContext | None:
    """Return the context for the CA of its API and LLM proxy; None for plain HTTP."""
    return _trust(stack.ca) if stack.tls and stack.ca else None


@functools.cache
def _trust(ca: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca)


def _good(topic: str, key: str) -> bytes:
    """Return a good job as a record of the topic; nothing for a topic without jobs."""
    if topic == "commands":
        spec = JobSpec.model_validate(a_spec())
        job_id = derive_job_id("ada", POOL, key)
        return a_command(
            SubmitJob(job_id=job_id, tenant="ada", pool=POOL, idempotency_key=key, spec=spec)
        )
    return a_submission(key) if topic.startswith("submissions.") else b""


def eventually(condition: Callable[[], T | None], within_s: float = PATIENCE_S) -> T:
    """Call the condition ten times a second until its result is true; return the result."""
    ends = time.monotonic() + within_s
    while not (result := condition()):
        assert time.monotonic() < ends, "did not happen in time"
        time.sleep(0.1)
    return result


def a_spec(**changed: object) -> Json:
    return {"name": "job", "gang": {"workers": 1}, "simulated": {"duration_s": 0.05}} | changed


def a_submission(key: str, **changed: object) -> bytes:
    """A submission as a tenant would publish it."""
    return an_event({"idempotency_key": key, "spec": a_spec(**changed)}, id=key)


def an_event(data: object, type: str = "job.submit.v1", **envelope: object) -> bytes:
    """A CloudEvent with any field set, or overwritten by nonsense."""
    plain = {"specversion": "1.0", "id": str(uuid4()), "source": "/test", "type": type}
    return json.dumps({**plain, "data": data, **envelope}).encode()


def a_command(message: Model, id: str = "") -> bytes:
    """Return the command as a record of the gateway."""
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
    """Run all services but those named. The path is short: a unix socket's may have 107 bytes."""
    with scratch_folder("e2e") as folder:
        services = tuple(service for service in SERVICES if service.name not in without)
        options = supervise.StackOptions(
            data_dir=folder,
            services=services,
            foreground=True,
            env=env or {},
            tracing=tracing,
            tls=tls,
        )
        try:
            node = None if AGENT in without else local_node(LOCAL_POOL)
            stack = supervise.up(with_nodes(options, {VIRTUAL: nodes}, node))
            key = open_up(stack, POOLS, TENANTS, node)
            names = [service.name for service in services] + ([AGENT] if node else [])
            supervise.wait_ready(folder, tuple(names), PATIENCE_S)
            yield prepared(Stand(stack, {"root": key}))
        finally:
            supervise.down(folder)


def prepared(stand: Stand) -> Stand:
    """Return the stand once tenants have keys, nodes have joined and the ingress reads."""
    for tenant in TENANTS:
        key = eventually(lambda tenant=tenant: _key(stand, tenant))  # type: ignore[misc]
        stand.keys[tenant] = key
    pools = eventually(lambda: page if (page := stand.get("/v1/pools")) and page["items"] else None)
    stand.lane = next(row["partition"] for row in pools["items"] if row["pool"] == POOL)
    stand.publish("submissions.ada", 0, a_submission("first"))
    assert stand.ended(derive_job_id("ada", POOL, "first"))["phase"] == "succeeded"
    return stand


def _key(stand: Stand, tenant: str) -> str | None:
    status, ticket = stand.call("POST", f"/v1/tenants/{tenant}/keys", {"role": "submitter"})
    if status != 202:
        return None
    assert stand.answer(ticket["command_id"])["accepted"]
    return str(ticket["key"])

"""Canaries: secrets that went through a running stack are in no log, trace, event, row, argv or
environment; and the audit lists each action with its principal."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest

from infra.postgres import server as postgres
from infra.supervisor import supervise
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.topics import TOPICS, submissions, tenant_events
from shared.ledger.partition import TP
from shared.projections.database import connect
from shared.secrets.secret_keys import FILE
from tests.e2e.engine import an_engine
from tests.e2e.stand import LOCAL_POOL, TENANTS, Stand, a_stand, eventually
from tests.patience import PATIENCE_S
from tests.serving import Quiet, serving

pytestmark = [pytest.mark.stack, pytest.mark.parts]
CANARY = "canary-7f3a91"
JOB_SECRET, PROMPT, REJECTED, TOKEN, ENGINE_KEY = (
    f"{CANARY}-{name}" for name in ("job", "prompt", "body", "token", "engine")
)
USES = 'printf %s "$PASS" | sha256sum; sleep 3'
"""Shows that the secret is there without it."""
FORGED = "eyJhbGciOiJub25lIn0." + TOKEN + ".x"


@dataclass
class Spans:
    """The spans that an OTLP receiver was sent, and its address."""

    url: str = ""
    raw: list[bytes] = field(default_factory=list)


@contextmanager
def receiver() -> Iterator[Spans]:
    spans = Spans()

    class Receiver(Quiet):
        def do_POST(self) -> None:
            raw = self.received()
            gzipped = self.headers.get("Content-Encoding") == "gzip"
            spans.raw.append(gzip.decompress(raw) if gzipped else raw)
            self.answer(200)

    with serving(Receiver) as spans.url:
        yield spans


@dataclass
class Driven:
    """A stack after its traffic, and all secrets, by name."""

    stand: Stand
    spans: Spans
    secrets: dict[str, str]


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    engines = tmp_path_factory.mktemp("engines")
    (engines / "llama-key").write_text(ENGINE_KEY + "\n")
    with (
        receiver() as spans,
        an_engine("llama", engines / "log", keys=engines / "llama-key") as engine,
    ):
        env = {"*": {"BERTH_OTLP": spans.url}, "throttle": {"BERTH_UPSTREAM_KEYS": str(engines)}}
        with a_stand(env=env) as stand:
            drive(stand, engine)
            yield Driven(stand, spans, secrets_of(stand))


def secrets_of(stand: Stand) -> dict[str, str]:
    """Return all secrets by names that may be shown."""
    secrets = {f"key of {caller}": key.rpartition(".")[2] for caller, key in stand.keys.items()}
    root = stand.stack.state.parent
    for user in postgres.USERS:
        line = (root / "postgres" / "passwords" / user).read_text()
        secrets[f"password of {user}"] = line.strip().rpartition(":")[2]
    canaries = {"job": JOB_SECRET, "prompt": PROMPT, "body": REJECTED, "token": TOKEN}
    canaries["engine"] = ENGINE_KEY
    assert all(len(secret) > 12 for secret in secrets.values())
    return secrets | canaries


def drive(stand: Stand, engine: str) -> None:
    """Submit work of every kind and bad requests, then kill processes."""
    spec = {"name": "reads", "command": ["sh", "-c", USES], "env": {"PASS": "secret://db"}}
    body = {"spec": spec, "pool": LOCAL_POOL}
    assert stand.call("POST", "/v1/jobs", body, caller="ada")[0] == 422
    for path, value in (("db", JOB_SECRET), ("gone", JOB_SECRET)):
        status, receipt = stand.call("PUT", f"/v1/secrets/{path}", {"value": value}, caller="ada")
        assert status == 202, receipt
    too_long = {"value": REJECTED + "x" * 40_000}
    assert stand.call("PUT", "/v1/secrets/long", too_long, caller="ada")[0] == 422
    status, ticket = stand.call("POST", "/v1/jobs", body, caller="ada")
    assert status == 202, ticket
    wait_for_worker(stand)
    assert [name for path in state_files(stand) for name in seen_in(path, JOB_SECRET)] == []
    assert stand.ended(ticket["job_id"])["phase"] == "succeeded"
    deleted_meanwhile(stand, spec)
    for bad in ({"API_TOKEN": REJECTED}, {"A": ["x", REJECTED]}, {REJECTED: 7}):
        status, ticket = stand.call(
            "POST", "/v1/jobs", {"spec": {**spec, "env": bad}}, caller="ada"
        )
        assert status == 422
    ask_llm(stand, engine)
    send_unauthorized(stand)
    status, made = stand.call("POST", "/v1/tenants/bob/keys", {"key_id": "bob-2"})
    assert stand.answer(made["command_id"])["accepted"]
    stand.keys["bob-2"] = made["key"]
    status, gone = stand.call("DELETE", "/v1/keys/bob-2")
    assert stand.answer(gone["command_id"])["accepted"]
    pids = stand.pids()
    for name in ("projector", "placement", "executor-agents"):
        os.kill(pids[name], signal.SIGKILL)
    os.kill(pids["postgres"], signal.SIGQUIT)
    supervise.wait_ready(
        stand.stack.data_dir, ("projector", "placement", "executor-agents"), PATIENCE_S
    )
    assert stand.ended(stand.submit()["job_id"])["phase"] == "succeeded"


def wait_for_worker(stand: Stand) -> None:
    """Return once the worker has shown that it got the secret."""
    digest = hashlib.sha256(JOB_SECRET.encode()).hexdigest().encode()
    eventually(
        lambda: any(digest in path.read_bytes() for path in stand.stack.agent.rglob("output.log.*"))
    )


def state_files(stand: Stand) -> Iterator[Path]:
    """Yield the files of the node's agent: orders, specifications, output."""
    agent = stand.stack.agent
    files = [path for path in agent.rglob("*") if path.is_file()]
    assert any(path.name == "spec.json" for path in files)
    yield from files


def seen_in(path: Path, secret: str) -> list[str]:
    return [str(path)] if secret.encode() in path.read_bytes() else []


def deleted_meanwhile(stand: Stand, spec: dict[str, Any]) -> None:
    """A secret that is deleted while its job waits fails the job for good, at its start."""
    env = {"PASS": "secret://gone"}
    late = {**spec, "env": env, "retry": {"max_attempts": 5}}
    first = {"spec": {**spec, "env": {}, "command": ["sleep", "2"]}, "pool": LOCAL_POOL}
    _, earlier = stand.call("POST", "/v1/jobs", first, caller="ada")
    late["depends_on"] = [earlier["job_id"]]
    status, ticket = stand.call(
        "POST", "/v1/jobs", {"spec": late, "pool": LOCAL_POOL}, caller="ada"
    )
    assert status == 202, ticket
    assert stand.call("DELETE", "/v1/secrets/gone", caller="ada")[0] == 202
    failed = stand.ended(ticket["job_id"])
    assert (failed["phase"], failed["attempt"]) == ("failed", 1), failed
    assert failed["failure"]["reason"] == "secret_missing"
    assert "or not any more" in failed["failure"]["detail"]


def ask_llm(stand: Stand, engine: str) -> None:
    upstream = {"name": "e1", "url": engine, "key": "llama-key"}
    endpoint = {"endpoint": "llama", "upstreams": [upstream]}
    _, ticket = stand.call("POST", "/v1/endpoints", endpoint)
    assert stand.answer(ticket["command_id"])["accepted"]
    request = {"model": "llama", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 4}
    eventually(lambda: completed(stand, request) == 200)
    for wrong in ({**request, "model": PROMPT}, {**request, "max_tokens": PROMPT}):
        assert completed(stand, wrong) in (400, 404, 422)


def completed(stand: Stand, body: dict[str, Any]) -> int:
    request = urllib.request.Request(
        stand.stack.llm + "/v1/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {stand.keys['ada']}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def send_unauthorized(stand: Stand) -> None:
    stand.keys |= {"wrong": f"ada-x.{TOKEN}", "forged": FORGED}
    for caller in ("wrong", "forged"):
        assert stand.call("GET", "/v1/jobs", caller=caller)[0] == 401
        del stand.keys[caller]
    assert stand.call("POST", "/v1/pools", {"pool": "mine"}, caller="ada")[0] == 403


def secrets_in(driven: Driven, place: str, raw: bytes) -> list[str]:
    secrets = driven.secrets.items()
    return [f"{name} in {place}" for name, secret in secrets if secret.encode() in raw]


def test_no_log_or_kept_file_holds_a_secret(driven: Driven) -> None:
    data, seen, count = driven.stand.stack.data_dir, [], 0
    cluster = driven.stand.stack.state.parent / "postgres" / "cluster"
    for path in data.rglob("*"):
        is_kept_for_it = path.parent.name == "passwords" or path.name == "operator.key"
        if path.is_file() and not is_kept_for_it and not path.is_relative_to(cluster):
            seen += secrets_in(driven, str(path.relative_to(data)), path.read_bytes())
            count += 1
    assert seen == [] and count > 15


def test_memory_of_the_node_holds_no_value_after_the_job(driven: Driven) -> None:
    left = [path for path in Path("/dev/shm").glob("berth-agent-*/*") if path.is_file()]
    assert [path for path in left if JOB_SECRET.encode() in path.read_bytes()] == []


def test_files_that_hold_secrets_are_closed(driven: Driven) -> None:
    data = driven.stand.stack.data_dir
    kept = [*data.rglob("passwords/*"), data / "operator.key", data / "stack.json", data / FILE]
    assert len(kept) > 5
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}


def test_no_process_has_a_secret_in_its_arguments_or_environment(driven: Driven) -> None:
    seen, processes = [], 0
    for name, pid in driven.stand.pids().items():
        for process in (parent := psutil.Process(pid), *parent.children(recursive=True)):
            argv, environ = Path(f"/proc/{process.pid}/cmdline"), f"/proc/{process.pid}/environ"
            seen += secrets_in(driven, f"argv of {name}", argv.read_bytes())
            seen += secrets_in(driven, f"environ of {name}", Path(environ).read_bytes())
            processes += 1
    assert seen == [] and processes >= len(driven.stand.pids())


def test_no_span_holds_a_secret(driven: Driven) -> None:
    raw = b"".join(driven.spans.raw)
    for service in (b"gateway", b"admission", b"placement", b"throttle"):
        assert service in raw
    assert secrets_in(driven, "a span", raw) == []


async def test_no_topic_holds_a_secret(driven: Driven) -> None:
    stack = driven.stand.stack
    specs = [
        *TOPICS.values(),
        *(make(name) for name in TENANTS for make in (submissions, tenant_events)),
    ]
    log = KafkaLog(stack.connection("operator"), client="canary")
    await log.start()
    seen: list[str] = []
    records = 0
    for spec in specs:
        lanes = range(1 if spec.single_partition else stack.partitions)
        feed = await log.feed({TP(spec.name, lane): 0 for lane in lanes}, lossy=True)
        while polled := await feed.poll(0.5, 5000):
            for entry in (entry for entries in polled.values() for entry in entries):
                records += 1
                seen += secrets_in(driven, spec.name, (entry.value or b"") + repr(entry).encode())
        await feed.close()
    await log.stop()
    assert seen == [] and records > 100


async def test_no_row_holds_a_secret(driven: Driven) -> None:
    conn = await connect(driven.stand.stack.postgres)
    tables = await conn.fetch(
        "SELECT oid::regclass::text AS name FROM pg_class WHERE "
        "relkind IN ('r', 'v') AND relnamespace IN ('berth'::regnamespace, "
        "'pg_catalog'::regnamespace)"
    )
    seen: list[str] = []
    for name in (row["name"] for row in tables):
        try:
            rows = await conn.fetch(f"SELECT t::text AS t FROM {name} t")  # noqa: S608
        except asyncpg.PostgresError:
            continue
        seen += secrets_in(driven, name, "\n".join(str(row["t"]) for row in rows).encode())
    await conn.close()
    assert seen == []


def test_the_audit_has_the_principal_of_each_action_and_each_refusal(driven: Driven) -> None:
    stand = driven.stand
    root = f"key:{stand.keys['root'].partition('.')[0]}"

    def entries() -> set[tuple[str, str, str, str]]:
        rows = (stand.get("/v1/audit?limit=1000") or {"items": []})["items"]
        return {(row["principal"], row["action"], row["object"], row["outcome"]) for row in rows}

    ada = f"key:{stand.keys['ada'].rpartition('.')[0]}"
    expected = {
        (root, "key.create.v1", "bob-2", "accepted"),
        (root, "key.revoke.v1", "bob-2", "accepted"),
        (root, "endpoint.configure.v2", "llama", "accepted"),
        ("machine", "pool.configure.v1", LOCAL_POOL, "accepted"),
        (ada, "POST /v1/pools", "", "refused"),
        ("", "GET /v1/jobs", "", "refused"),
    }
    eventually(lambda: expected <= entries())
    assert not any(action == "job.submit.v1" for _, action, _, _ in entries())
    assert stand.call("GET", "/v1/audit", caller="ada")[0] == 403
    printed = subprocess.run(
        [
            sys.executable,
            "-m",
            "cli",
            "audit",
            "--action",
            "key.revoke.v1",
            "--json",
            "--data",
            str(stand.stack.data_dir),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    [row] = json.loads(printed.stdout)
    assert (row["principal"], row["object"], row["requests"]) == (root, "bob-2", 1)
    assert secrets_in(driven, "the audit", printed.stdout.encode()) == []


def test_verify_holds_and_a_revoked_key_opens_nothing(driven: Driven) -> None:
    assert driven.stand.verify().violations == []
    assert driven.stand.call("GET", "/v1/jobs", caller="bob-2")[0] == 401

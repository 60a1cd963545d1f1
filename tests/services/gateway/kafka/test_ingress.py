"""Kafka ingress: every record of a tenant's topic becomes one command, whatever it holds."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

from infra.broker import topics
from shared.contracts.access import TenantRegistered
from shared.contracts.identity import derive_command_id, derive_job_id
from shared.contracts.topics import submissions
from shared.ledger import cloudevents
from shared.process.connection import Connection
from tests.patience import PATIENCE_S
from tests.services.gateway.stack import LANES, Stack


def record_body(
    id: str, data: Any, type_: str = "job.submit.v1", *, tenant: str = "", traceparent: str = ""
) -> bytes:
    raw = json.dumps(data).encode()
    return cloudevents.encode(
        id=id, source="/ada", type=type_, data=raw, tenant=tenant, traceparent=traceparent
    )


async def until(stack: Stack, command_id: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        while (envelope := await stack.command(command_id)) is None:
            await asyncio.sleep(0.1)
    return envelope


async def test_submissions_of_a_tenant_become_commands(stack: Stack) -> None:
    trace = "00-" + "3" * 32 + "-" + "4" * 16 + "-01"
    offsets = await stack.put(
        "submissions.ada",
        3,
        record_body("k1", {"name": "flat", "pool": "side"}, traceparent=trace),
        record_body("k2", {"spec": {"name": "nested"}, "idempotency_key": "own"}),
        record_body("k3", {"job_id": "some-job", "pool": "side"}, "job.cancel.v1"),
    )
    ids = [derive_command_id("submissions.ada", 3, offset) for offset in offsets]
    flat = await until(stack, ids[0])
    assert (flat["lane"], flat["tenant"], flat["pool"]) == (2, "ada", "side")
    assert flat["data"]["job_id"] == derive_job_id("ada", "side", "k1")
    assert flat["traceparent"].split("-")[1] == "3" * 32
    nested = await until(stack, ids[1])
    assert nested["data"]["idempotency_key"] == "own" and nested["lane"] == 1
    cancel = await until(stack, ids[2])
    assert (cancel["type"], cancel["lane"]) == ("job.cancel.v1", 2)
    assert cancel["data"]["tenant"] == "ada"


async def test_an_invalid_record_is_rejected_and_blocks_no_other(stack: Stack) -> None:
    bad = {
        b"\xff\xfe": "not JSON",
        b"": "not JSON",
        record_body("x", {"name": "x"}, "job.dance.v1"): "type",
        record_body("x", {"name": "x", "colour": 1}): "colour",
        record_body("x", {"name": "x", "gang": {"workers": -2}}): "gang.workers = -2",
        record_body("x", {"name": "x", "env": {"PASSWORD": "canary"}}): "secret://",
        record_body("x", {"name": "x", "tenant": "bob"}): "tenant",
        record_body("x", {"name": "x"}, tenant="bob"): "tenant",
        record_body("x", {"name": "x", "pool": "none"}): "pool",
        record_body("x", {"name": "x" * 70000}): "bytes",
        record_body("x\x00", {"name": "x"}): "NUL",
        record_body("x", [1]): "JSON object",
    }
    *offsets, last = await stack.put(
        "submissions.ada", 0, *bad, record_body("good", {"name": "good"})
    )
    good = await until(stack, derive_command_id("submissions.ada", 0, last))
    assert good["type"] == "job.submit.v1"
    for offset, (raw, reason) in zip(offsets, bad.items(), strict=True):
        envelope = await until(stack, derive_command_id("submissions.ada", 0, offset))
        assert envelope["type"] == "submission.reject.v1"
        data = envelope["data"]
        assert reason in data["reason"] and "canary" not in str(data)
        assert (data["tenant"], data["topic"], data["offset"]) == ("ada", "submissions.ada", offset)
        assert data["sha256"] == hashlib.sha256(raw).hexdigest()


async def test_llm_requests_of_a_tenant_go_to_the_lane_of_their_endpoint(stack: Stack) -> None:
    request = {"request_id": "r1", "endpoint": "llama", "body": {"messages": []}}
    foreign = record_body("k2", {**request, "tenant": "bob"}, "llm.serve.v1")
    offsets = await stack.put(
        "requests.ada", 2, record_body("k1", request, "llm.serve.v1"), foreign
    )
    ids = [derive_command_id("requests.ada", 2, offset) for offset in offsets]
    async with asyncio.timeout(PATIENCE_S):
        while (served := await stack.command(ids[0], "llm.requests")) is None:
            await asyncio.sleep(0.1)
    assert (served["lane"], served["tenant"], served["type"]) == (3, "ada", "llm.serve.v1")
    assert (served["data"]["tenant"], served["data"]["body"]) == (
        "ada",
        {"model": "llama", "messages": []},
    )
    refused = await until(stack, ids[1])
    assert refused["type"] == "submission.reject.v1"
    assert "must be the sender's own" in refused["data"]["reason"]


async def test_the_topic_of_a_new_tenant_is_read_within_seconds(stack: Stack) -> None:
    specs = (submissions("late"),)
    await asyncio.to_thread(
        topics.create, Connection(stack.kafka, idempotent=False), LANES, False, specs
    )
    await stack.append("access", 0, TenantRegistered(tenant="late", default_pool="main"))
    [offset] = await stack.put("submissions.late", 0, record_body("k", {"name": "first"}))
    envelope = await until(stack, derive_command_id("submissions.late", 0, offset))
    assert envelope["tenant"] == "late"

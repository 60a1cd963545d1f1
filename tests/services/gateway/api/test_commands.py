"""Commands other than submissions: the rights they need, and the topics they go to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shared.contracts.access import KeyCreated
from shared.contracts.admission import JobAdmitted
from shared.contracts.job_spec import JobSpec
from shared.contracts.keys import hash_secret
from shared.telemetry.spans import Spans
from tests.services.gateway.stack import TRACE, Stack

JOB = {"name": "train"}
NODE = "/v1/nodes/n9"
INJECTION_ENDS = "fault.end-injection.v1"
TENANT = {"tenant": "eve", "default_pool": "main"}

ORDERS: list[tuple[str, str, str, Any, str, str]] = [
    ("POST", f"{NODE}/cordon", "op", {"pool": "side"}, "commands", "node.cordon.v1"),
    ("POST", f"{NODE}/drain", "op", {"pool": "side", "reason": "x"}, "commands", "node.drain.v1"),
    ("POST", f"{NODE}/uncordon", "op", {"pool": "side"}, "commands", "node.uncordon.v1"),
    (
        "POST",
        f"{NODE}/lost",
        "op",
        {"pool": "side", "powered_off": True},
        "commands",
        "node.declare-lost.v1",
    ),
    (
        "POST",
        f"{NODE}/inject",
        "root",
        {"pool": "side", "fault": "slow", "factor": 2, "for_s": 60},
        "commands",
        "fault.inject.v1",
    ),
    ("POST", f"{NODE}/end-injection", "root", {"pool": "side"}, "commands", INJECTION_ENDS),
    ("POST", "/v1/faults/j/1/0/1/dismiss", "op", {"pool": "side"}, "commands", "fault.dismiss.v1"),
    (
        "POST",
        "/v1/faults/j/1/0/1/false-alarm",
        "op",
        {"pool": "side", "reason": "x"},
        "commands",
        "fault.mark-false-alarm.v1",
    ),
    (
        "POST",
        "/v1/faults/plans/j/1/migrate/1/approve",
        "op",
        {"pool": "side", "reason": "x"},
        "commands",
        "mitigation.approve.v1",
    ),
    ("POST", "/v1/tenants/ada/quota", "op", {"guaranteed_gpus": 4}, "commands", "quota.set.v1"),
    ("POST", "/v1/tenants", "root", TENANT, "access.commands", "tenant.register.v1"),
    ("DELETE", "/v1/tenants/eve", "root", None, "access.commands", "tenant.retire.v1"),
    ("POST", "/v1/pools", "root", {"pool": "new"}, "access.commands", "pool.configure.v1"),
    ("DELETE", "/v1/keys/some-key", "root", None, "access.commands", "key.revoke.v1"),
    (
        "POST",
        "/v1/endpoints",
        "root",
        {"endpoint": "e", "batch_tokens": 10},
        "access.commands",
        "endpoint.configure.v2",
    ),
    ("DELETE", "/v1/endpoints/meta/L", "root", None, "access.commands", "endpoint.delete.v1"),
]


@pytest.mark.parametrize(("method", "path", "key", "body", "topic", "type_"), ORDERS)
async def test_an_order_becomes_the_command_of_its_owner(
    stack: Stack, method: str, path: str, key: str, body: Any, topic: str, type_: str
) -> None:
    status, content, _ = await stack.call(method, path, body, key=key)
    assert status == 202
    command = await stack.command(content["command_id"], topic)
    assert command is not None and command["type"] == type_
    if "node" in type_ or "fault" in type_:
        assert command["lane"] == 2
        assert command["data"].get("reason", "") == (body.get("reason", ""))


@pytest.mark.parametrize(("method", "path", "key", "body", "topic", "type_"), ORDERS)
async def test_an_order_needs_its_role(
    stack: Stack, method: str, path: str, key: str, body: Any, topic: str, type_: str
) -> None:
    weaker = "ada" if key == "op" else "op"
    status, content, _ = await stack.call(method, path, body, key=weaker)
    assert (status, content["reason"]) == (403, "forbidden")
    assert (await stack.call(method, path, body, key=""))[0] == 401


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("/v1/pools/new", {"rank_ms": 9}, 422, "unknown_pool"),
        ("/v1/pools/new", None, 400, "malformed"),
        ("/v1/endpoints/meta/new", {"batch_tokens": 10}, 422, "unknown_endpoint"),
        ("/v1/tenants/ada", {"weight": 2}, 409, "upgrade_not_finished"),
    ],
)
async def test_a_change_before_the_end_of_an_upgrade_is_one_that_all_releases_read(
    stack: Stack, path: str, body: Any, status: int, reason: str
) -> None:
    answer, content, _ = await stack.call("PATCH", path, body, key="root")
    assert (answer, content["reason"]) == (status, reason)


async def test_a_cancel_reaches_its_job_before_the_row_is_in_postgres(stack: Stack) -> None:
    _, job, _ = await stack.call("POST", "/v1/jobs", {**JOB, "pool": "side"})
    status, content, _ = await stack.call("DELETE", f"/v1/jobs/{job['job_id']}")
    assert status == 202
    command = await stack.command(content["command_id"])
    assert command is not None and command["lane"] == 2
    assert command["data"] == {"job_id": job["job_id"], "tenant": "ada", "reason": ""}


async def test_another_tenants_job_cannot_be_cancelled(stack: Stack) -> None:
    _, job, _ = await stack.call("POST", "/v1/jobs", JOB)
    path = f"/v1/jobs/{job['job_id']}/cancel"
    assert (await stack.call("POST", path, {}, key="bob"))[0] == 404
    assert (await stack.call("POST", path, {"reason": "r"}, key="op"))[0] == 202
    assert (await stack.call("POST", path, {"why": "r"}))[0] == 422
    assert (await stack.call("POST", "/v1/jobs/never-seen/cancel", {}))[0] == 404


async def test_a_key_with_a_user_cancels_that_users_jobs_alone(stack: Stack) -> None:
    """By the row of the job, and before it is in Postgres."""
    robot = KeyCreated(
        key_id="one-user", sha256=hash_secret("s1"), role="submitter", tenant="ada", user="robot"
    )
    await stack.append("access", 0, robot)
    headers = {"Authorization": "Bearer one-user.s1"}

    async def cancel(job: str, body: object = None) -> tuple[int, str]:
        path = f"/v1/jobs/{job}/cancel"
        status, content, _ = await stack.call("POST", path, body or {}, key="", headers=headers)
        return status, str(content.get("errors") or content.get("reason"))

    _, other, _ = await stack.call("POST", "/v1/jobs", JOB)
    _, own, _ = await stack.call("POST", "/v1/jobs", JOB, key="", headers=headers)
    admitted = [
        JobAdmitted(job_id=job, tenant="ada", submitted_at=1, spec=JobSpec(name="j", user=user))
        for job, user in (("of-eve", "eve"), ("of-robot", "robot"))
    ]
    await stack.project("admission", 1, 950, *admitted)
    for job in (other["job_id"], "of-eve"):
        status, errors = await cancel(job)
        assert status == 403 and "must be 'robot', the user of key:one-user" in errors
    assert (await cancel("of-eve", {"pool": "main"}))[0] == 403, "whatever pool is named"
    for job in (own["job_id"], "of-robot"):
        assert (await cancel(job))[0] == 202
    assert await cancel("never-seen") == (404, "not_found")
    assert (await stack.call("POST", "/v1/jobs/of-eve/cancel", {}))[0] == 202, "a key without"


async def test_a_new_key_is_shown_once_and_kept_as_a_hash(stack: Stack) -> None:
    status, content, _ = await stack.call("POST", "/v1/tenants/bob/keys", {}, key="root")
    assert status == 202
    secret = content["key"].removeprefix(content["key_id"] + ".")
    command = await stack.command(content["command_id"], "access.commands")
    assert command is not None and command["data"]["sha256"] == hash_secret(secret)
    assert command["data"]["tenant"] == "bob" and secret not in str(command)


async def test_a_tenants_key_is_no_operators(stack: Stack) -> None:
    body = {"role": "operator"}
    assert (await stack.call("POST", "/v1/tenants/bob/keys", body, key="root"))[0] == 422
    assert (await stack.call("POST", "/v1/keys", body, key="root"))[0] == 202


async def test_an_llm_request_goes_to_the_lane_of_its_endpoint(stack: Stack) -> None:
    body = {"request_id": "r1", "endpoint": "llama", "prompt_tokens": 5, "max_output_tokens": 9}
    status, content, _ = await stack.call("POST", "/v1/llm/requests", body)
    assert status == 202
    command = await stack.command(content["command_id"], "llm.requests")
    assert command is not None and (command["lane"], command["data"]["tenant"]) == (3, "ada")
    assert (command["data"]["endpoint"], command["data"].get("model")) == ("llama", None)
    assert (await stack.call("POST", "/v1/llm/requests", {**body, "tenant": "bob"}))[0] == 403
    assert (await stack.call("POST", "/v1/llm/requests", {**body, "endpoint": "x"}))[0] == 422
    assert (await stack.call("POST", "/v1/llm/requests", {**body, "prompt": "hi"}))[0] == 422


async def test_an_llm_request_is_passed_on_with_its_body_for_that_model_only(stack: Stack) -> None:
    openai: dict[str, object] = {"model": "llama", "prompt": "x" * 100_000, "max_tokens": 9}
    body = {"request_id": "r2", "endpoint": "llama", "body": openai, "route": "completions"}
    status, content, _ = await stack.call("POST", "/v1/llm/requests", body)
    assert status == 202
    command = await stack.command(content["command_id"], "llm.requests")
    assert command is not None
    assert (command["data"]["body"], command["data"]["route"]) == (openai, "completions")
    other = {**body, "body": {**openai, "model": "other"}}
    assert (await stack.call("POST", "/v1/llm/requests", other))[0] == 422
    huge = {**body, "body": {**openai, "prompt": "x" * 800_000}}
    assert (await stack.call("POST", "/v1/llm/requests", huge))[0] == 413


async def test_an_unknown_node_is_not_found(stack: Stack) -> None:
    assert (await stack.call("POST", "/v1/nodes/ghost/cordon", {}, key="op"))[0] == 404
    assert (await stack.call("POST", "/v1/nodes/ghost/paint", {}, key="op"))[0] == 404


async def test_an_unknown_fault_is_not_found(stack: Stack) -> None:
    assert (await stack.call("POST", "/v1/faults/a/1/0/1/dismiss", {}, key="op"))[0] == 404
    assert (await stack.call("POST", "/v1/faults/a%20b/dismiss", {}, key="op"))[0] == 422


async def test_probes_and_documents_need_no_key(stack: Stack) -> None:
    for path in ("/", "/health", "/ready", "/metrics", "/openapi.json", "/docs"):
        async with stack.request("GET", path, key="") as answer:
            assert answer.status == 200, path


async def test_openapi_describes_every_route_body_and_problem(stack: Stack) -> None:
    _, document, _ = await stack.call("GET", "/openapi.json", key="")
    schemas = document["components"]["schemas"]
    assert {"Problem", "FlatJobBody", "JobBody", "Gang", "SubmissionReceipt"} <= set(schemas)
    for path, methods in document["paths"].items():
        for route in methods.values():
            assert route["description"], path
            if path.startswith("/v1/") and path != "/v1/traces":
                assert {"401", "403", "503"} <= set(route["responses"]), path
    assert "$defs" not in str(document)


async def test_an_unknown_path_or_method_is_a_problem_too(stack: Stack) -> None:
    status, content, _ = await stack.call("GET", "/v1/nothing")
    assert (status, content["reason"]) == (404, "not_found")
    assert (await stack.call("PUT", "/v1/jobs"))[0] == 405
    status, _, headers = await stack.call("POST", "/v1/nodes/tokens/t1", {}, key="op")
    assert (status, headers["allow"]) == (405, "DELETE")


async def test_spans_come_in_and_are_shown_with_their_job(stack: Stack) -> None:
    spec = JobSpec(name="seen")
    await stack.project(
        "admission", 2, 95, JobAdmitted(job_id="traced", tenant="ada", submitted_at=1, spec=spec)
    )
    spans = Spans("admission", stack.url, "test")
    with spans.span("admit", TRACE, {"job.id": "traced"}):
        pass
    with spans.span("place", TRACE, {"job.id": "foreign", "tenant.id": "bob"}):
        pass
    await asyncio.to_thread(spans.shutdown)
    status, content, _ = await stack.call("GET", "/v1/jobs/traced/trace")
    assert (status, [span["name"] for span in content["spans"]]) == (200, ["admit"])
    assert content["spans"][0]["trace_id"] == TRACE.split("-")[1]
    assert (await stack.call("GET", "/v1/jobs/traced/trace", key="bob"))[0] == 404


async def test_spans_that_are_none_are_refused(stack: Stack) -> None:
    status, content, _ = await stack.call("POST", "/v1/traces", raw=b"\xff")
    assert (status, content["reason"]) == (400, "malformed")

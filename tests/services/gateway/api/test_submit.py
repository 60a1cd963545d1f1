"""Submitting over HTTP: what is taken, what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from shared.contracts.identity import derive_job_id
from tests.services.gateway.stack import Stack

JOB = {"name": "train", "gang": {"workers": 2, "gpus_per_worker": 1}}


async def test_a_submission_is_acknowledged_with_its_ids(stack: Stack) -> None:
    status, content, _ = await stack.call(
        "POST", "/v1/jobs", JOB, headers={"Idempotency-Key": "first"}
    )
    assert status == 202
    assert content["job_id"] == derive_job_id("ada", "main", "first")
    assert content["job_ids"] == [content["job_id"]]
    command = await stack.command(content["command_id"])
    assert command is not None and command["lane"] == 1
    assert (command["type"], command["tenant"], command["pool"]) == ("job.submit.v1", "ada", "main")
    assert command["data"]["spec"]["gang"]["workers"] == 2
    assert command["traceparent"].split("-")[1] == content["trace_id"]


async def test_the_senders_trace_goes_on(stack: Stack) -> None:
    trace = "00-11111111111111111111111111111111-2222222222222222-01"
    _, content, _ = await stack.call("POST", "/v1/jobs", JOB, headers={"traceparent": trace})
    assert content["trace_id"] == "1" * 32


async def test_a_repeat_has_the_same_job_id_and_a_command_of_its_own(stack: Stack) -> None:
    body = {**JOB, "idempotency_key": "again"}
    _, one, _ = await stack.call("POST", "/v1/jobs", body)
    _, two, _ = await stack.call("POST", "/v1/jobs", body)
    assert one["job_id"] == two["job_id"]
    assert one["command_id"] != two["command_id"]


async def test_without_a_key_every_request_is_a_new_submission(stack: Stack) -> None:
    _, one, _ = await stack.call("POST", "/v1/jobs", JOB)
    _, two, _ = await stack.call("POST", "/v1/jobs", JOB)
    assert one["job_id"] != two["job_id"]


async def test_both_spellings_of_a_submission_are_one_command(stack: Stack) -> None:
    around = {"pool": "side", "array_size": 3}
    _, flat, _ = await stack.call("POST", "/v1/jobs", {**JOB, **around, "idempotency_key": "f"})
    _, nested, _ = await stack.call(
        "POST", "/v1/jobs", {"spec": JOB, **around, "idempotency_key": "n"}
    )
    assert nested["job_ids"] == [f"{nested['job_id']}.{i}" for i in range(3)]
    one, two = await stack.command(flat["command_id"]), await stack.command(nested["command_id"])
    assert one is not None and two is not None and one["lane"] == two["lane"] == 2
    assert one["data"]["spec"] == two["data"]["spec"]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({**JOB, "colour": "red"}, "colour", "unknown field"),
    ({"name": "x", "gang": {"wrkers": 2}}, "gang.wrkers", "unknown field"),
    ({"spec": {"name": "x", "gang": {"wrkers": 2}}}, "spec.gang.wrkers", "unknown field"),
    ({"name": "x", "gang": {"workers": -1}}, "gang.workers", "greater than or equal to 1"),
    ({"name": "x", "gang": {"workers": "2"}}, "gang.workers", "valid integer"),
    ({"name": "x", "gang": {"gpus_per_worker": 1.5}}, "gang.gpus_per_worker", "whole number"),
    ({"name": "x", "walltime_s": 1e12}, "walltime_s", "less than or equal"),
    ({"name": "x\u0000y"}, "name", "NUL"),
    ({"name": "x", "node_selector": {"a": "b\u0000"}}, "node_selector", "NUL"),
    ({}, "name", "Field required"),
    ({**JOB, "pool": "nowhere"}, "pool", "no such pool"),
    ({**JOB, "array_size": 10001}, "array_size", "less than or equal"),
]


@pytest.mark.parametrize(("body", "field", "rule"), REFUSED)
async def test_an_invalid_field_is_named_with_its_rule(
    stack: Stack, body: dict[str, Any], field: str, rule: str
) -> None:
    status, content, headers = await stack.call("POST", "/v1/jobs", body)
    assert status == 422
    assert headers["Content-Type"] == "application/problem+json"
    assert content["reason"] == "invalid" and content["status"] == 422
    assert any(e["field"].startswith(field) and rule in e["rule"] for e in content["errors"])


async def test_an_error_never_repeats_a_possible_secret(stack: Stack) -> None:
    body = {"name": "x", "env": {"API_TOKEN": "canary"}, "command": ["run", 7], "pass": "canary"}
    status, content, _ = await stack.call("POST", "/v1/jobs", body)
    assert status == 422
    assert "canary" not in str(content)
    assert any("secret://" in e["rule"] for e in content["errors"])


@pytest.mark.parametrize(
    "raw", [b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"name": NaN}', b"[" * 100_0, b'{"a": 1e}']
)
async def test_what_is_no_json_object_is_malformed(stack: Stack, raw: bytes) -> None:
    status, content, _ = await stack.call("POST", "/v1/jobs", raw=raw)
    assert (status, content["reason"]) == (400, "malformed")


async def test_a_body_over_64_kib_is_too_large(stack: Stack) -> None:
    raw = b'{"name": "' + b"x" * 65536 + b'"}'
    assert (await stack.call("POST", "/v1/jobs", raw=raw))[0] == 413


async def test_another_media_type_is_not_guessed_at(stack: Stack) -> None:
    status, _, _ = await stack.call("POST", "/v1/jobs", JOB, headers={"Content-Type": "text/plain"})
    assert status == 415


async def test_a_body_that_names_another_tenant_is_refused(stack: Stack) -> None:
    status, content, _ = await stack.call("POST", "/v1/jobs", {**JOB, "tenant": "bob"})
    assert (status, content["reason"]) == (403, "tenant_mismatch")
    assert content["errors"][0]["field"] == "tenant"


@pytest.mark.parametrize(("key", "status"), [("", 401), ("revoked", 401), ("ada-view", 403)])
async def test_a_key_without_permission_cannot_submit(stack: Stack, key: str, status: int) -> None:
    assert (await stack.call("POST", "/v1/jobs", JOB, key=key))[0] == status


async def test_an_operator_says_for_whom(stack: Stack) -> None:
    status, content, _ = await stack.call("POST", "/v1/jobs", JOB, key="op")
    assert status == 422
    assert "berth submit --tenant TENANT" in content["errors"][0]["rule"]
    status, content, _ = await stack.call("POST", "/v1/jobs", {**JOB, "tenant": "bob"}, key="op")
    assert (status, content["pool"]) == (202, "side")
    status, content, _ = await stack.call("POST", "/v1/jobs", {**JOB, "tenant": "eve"}, key="op")
    assert (status, content["reason"]) == (403, "unknown_tenant")
    assert "`berth tenants add eve --pool POOL` registers it" in content["detail"]


async def test_two_different_keys_in_one_request_are_refused(stack: Stack) -> None:
    status, _, _ = await stack.call(
        "POST", "/v1/jobs", {**JOB, "idempotency_key": "a"}, headers={"Idempotency-Key": "b"}
    )
    assert status == 422

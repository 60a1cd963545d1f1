"""The routes that each role may call: one row for each route of the OpenAPI document."""

from __future__ import annotations

from asyncio import sleep, timeout

import pytest

from shared.contracts.access import KeyCreated, KeyRevoked, Role
from shared.contracts.keys import hash_secret
from shared.contracts.registry import RANK
from tests.patience import PATIENCE_S
from tests.services.gateway.stack import KEYS, Stack

OPEN, NODE = "open", "node"
LEAST: dict[tuple[str, str], Role | str] = {
    ("GET", "/health"): OPEN,
    ("GET", "/ready"): OPEN,
    ("GET", "/metrics"): OPEN,
    ("POST", "/v1/traces"): OPEN,  # from near addresses alone: see test_spans_from.py
    ("GET", "/v1/events"): "viewer",
    ("GET", "/v1/jobs"): "viewer",
    ("POST", "/v1/jobs"): "submitter",
    ("GET", "/v1/submissions"): "viewer",
    ("GET", "/v1/jobs/{job_id}"): "viewer",
    ("DELETE", "/v1/jobs/{job_id}"): "submitter",
    ("POST", "/v1/jobs/{job_id}/cancel"): "submitter",
    ("POST", "/v1/jobs/{job_id}/retry"): "submitter",
    ("POST", "/v1/jobs/{job_id}/terminal"): "submitter",
    ("PUT", "/v1/bundles"): "submitter",
    ("PUT", "/v1/bundles/parts/{sha256}"): "submitter",
    ("GET", "/v1/jobs/{job_id}/logs"): "viewer",
    ("GET", "/v1/jobs/{job_id}/timeline"): "viewer",
    ("GET", "/v1/jobs/{job_id}/trace"): "viewer",
    ("GET", "/v1/jobs/{job_id}/why"): "viewer",
    ("GET", "/v1/nodes"): "viewer",
    ("GET", "/v1/nodes/{node_id}"): "viewer",
    ("DELETE", "/v1/nodes/{node_id}"): "operator",
    ("GET", "/v1/enrolments"): "operator",
    ("GET", "/v1/enrolments/{node_id}"): "operator",
    ("POST", "/v1/nodes/tokens"): "operator",
    ("GET", "/v1/nodes/tokens"): "operator",
    ("DELETE", "/v1/nodes/tokens/{token_id}"): "operator",
    ("POST", "/v1/nodes/{node_id}/approve"): "operator",
    ("POST", "/v1/nodes/{node_id}/revoke"): "operator",
    ("POST", "/v1/nodes/{node_id}/lost"): "operator",
    ("POST", "/v1/nodes/{node_id}/inject"): "admin",
    ("POST", "/v1/nodes/{node_id}/end-injection"): "admin",
    ("POST", "/v1/nodes/{node_id}/cordon"): "operator",
    ("POST", "/v1/nodes/{node_id}/drain"): "operator",
    ("POST", "/v1/nodes/{node_id}/uncordon"): "operator",
    ("POST", "/agent/v1/join"): OPEN,  # its token is the right: see test_joining.py
    ("POST", "/agent/v1/renew"): NODE,  # a node's own credential is the right: ibidem
    ("GET", "/v1/queue"): "viewer",
    ("GET", "/v1/allocations"): "viewer",
    ("GET", "/v1/faults"): "viewer",
    ("GET", "/v1/faults/summary"): "viewer",
    ("GET", "/v1/llm/fairness"): "viewer",
    ("POST", "/v1/faults/{fault_id}/dismiss"): "operator",
    ("POST", "/v1/faults/{fault_id}/false-alarm"): "operator",
    ("POST", "/v1/faults/plans/{plan_id}/approve"): "operator",
    ("GET", "/v1/tenants"): "viewer",
    ("POST", "/v1/tenants"): "admin",
    ("GET", "/v1/tenants/{tenant}"): "viewer",
    ("DELETE", "/v1/tenants/{tenant}"): "admin",
    ("GET", "/v1/tenants/{tenant}/keys"): "viewer",
    ("POST", "/v1/tenants/{tenant}/keys"): "admin",
    ("PATCH", "/v1/tenants/{tenant}"): "admin",
    ("POST", "/v1/tenants/{tenant}/quota"): "operator",
    ("PATCH", "/v1/tenants/{tenant}/quota"): "operator",
    ("GET", "/v1/secrets"): "viewer",
    ("PUT", "/v1/secrets/{name}"): "submitter",
    ("DELETE", "/v1/secrets/{name}"): "submitter",
    ("POST", "/v1/secrets/rotate"): "operator",
    ("GET", "/v1/users"): "viewer",
    ("POST", "/v1/users"): "admin",
    ("PATCH", "/v1/users/{user}"): "admin",
    ("DELETE", "/v1/users/{user}"): "admin",
    ("PUT", "/v1/users/{user}/mail"): "submitter",
    ("DELETE", "/v1/users/{user}/mail"): "submitter",
    ("GET", "/v1/webhooks"): "viewer",
    ("POST", "/v1/webhooks"): "submitter",
    ("PATCH", "/v1/webhooks/{name}"): "submitter",
    ("DELETE", "/v1/webhooks/{name}"): "submitter",
    ("POST", "/v1/webhooks/{name}/test"): "submitter",
    ("POST", "/v1/keys"): "admin",
    ("DELETE", "/v1/keys/{key_id}"): "admin",
    ("GET", "/v1/pools"): "viewer",
    ("POST", "/v1/pools"): "admin",
    ("PATCH", "/v1/pools/{pool}"): "admin",
    ("DELETE", "/v1/pools/{pool}"): "admin",
    ("GET", "/v1/shares"): "viewer",
    ("POST", "/v1/upgrade/finish"): "admin",
    ("GET", "/v1/endpoints"): "viewer",
    ("POST", "/v1/endpoints"): "admin",
    ("GET", "/v1/endpoints/{endpoint}"): "viewer",
    ("PATCH", "/v1/endpoints/{endpoint}"): "admin",
    ("DELETE", "/v1/endpoints/{endpoint}"): "admin",
    ("GET", "/v1/commands/{command_id}"): "viewer",
    ("GET", "/v1/dead"): "viewer",
    ("GET", "/v1/dead/{dead_id}"): "viewer",
    ("POST", "/v1/dead/{input_id}/retry"): "operator",
    ("POST", "/v1/dead/{input_id}/skip"): "operator",
    ("GET", "/v1/audit"): "operator",
    ("GET", "/v1/whoami"): "viewer",
    ("POST", "/v1/llm/requests"): "submitter",
    ("GET", "/v1/llm/requests"): "viewer",
    ("GET", "/v1/llm/requests/{request_id}"): "viewer",
    ("GET", "/v1/llm/usage"): "viewer",
    ("GET", "/v1/usage"): "viewer",
    ("GET", "/v1/keys"): "viewer",
    ("GET", "/v1/llm/rejections"): "viewer",
    ("GET", "/v1/llm/limits"): "viewer",
}
HOLDERS: dict[Role, str] = {
    "viewer": "ada-view",
    "submitter": "ada",
    "operator": "op",
    "admin": "root",
}
VALUES = {
    "{job_id}": "no-such-job",
    "{sha256}": "0" * 64,
    "{node_id}": "no-such-node",
    "{token_id}": "no-such-token",
    "{tenant}": "ada",
    "{pool}": "no-such-pool",
    "{key_id}": "no-such-key",
    "{fault_id}": "f/1/0/1",
    "{plan_id}": "j/1/migrate/1",
    "{input_id}": "placement/0/1/0",
    "{name}": "no-such-secret",
    "{user}": "no-such-user",
    "{endpoint}": "no/such-endpoint",
    "{request_id}": "no-such-request",
    "{command_id}": "no-such-command",
    "{dead_id}": "placement/0/1/0",
}


async def test_every_route_has_a_row_here(stack: Stack) -> None:
    _, document, _ = await stack.call("GET", "/openapi.json", key="")
    routes = {(m.upper(), path) for path, methods in document["paths"].items() for m in methods}
    assert routes == set(LEAST)


async def status_of(stack: Stack, method: str, path: str, key: str, authorization: str = "") -> int:
    """Return the status of a request with an invalid body: rights are checked before it."""
    for name, value in VALUES.items():
        path = path.replace(name, value)
    raw = b'{"no such field": 1}' if method in ("POST", "PATCH") else None
    headers = {"Content-Type": "application/json"} | (
        {"Authorization": authorization} if authorization else {}
    )
    async with stack.request(method, path, key=key, data=raw, headers=headers) as answer:
        return answer.status


@pytest.mark.parametrize(("method", "path"), LEAST, ids=lambda part: part)
async def test_each_role_may_do_what_its_row_allows_and_no_more(
    stack: Stack, method: str, path: str
) -> None:
    least = LEAST[method, path]
    if least == OPEN:
        assert await status_of(stack, method, path, "") not in (401, 403)
        return
    assert await status_of(stack, method, path, "") == 401
    if least == NODE:
        assert await status_of(stack, method, path, HOLDERS["admin"]) == 401
        return
    for role, holder in HOLDERS.items():
        status = await status_of(stack, method, path, holder)
        if RANK[role] < RANK[least]:  # type: ignore[index]
            assert status == 403, role
        else:
            assert status in (200, 202, 404, 409, 415, 422), role


BAD = [
    "Basic b3A6cGFzcw==",
    "Bearer",
    "Bearer ",
    "Bearer x",
    f"Bearer {KEYS['revoked']}",
    "Bearer op-key.wrong",
    f"Token {KEYS['op']}",
    KEYS["op"],
    f"Bearer {'k' * 600}.x",
    "Bearer eyJhbGciOiJub25lIn0.e30.",
    f"Bearer {KEYS['op']} {KEYS['op']}",
]


@pytest.mark.parametrize("authorization", BAD)
async def test_any_other_header_value_is_rejected(stack: Stack, authorization: str) -> None:
    for method, path in LEAST:
        if LEAST[method, path] not in (OPEN, NODE):
            assert await status_of(stack, method, path, "", authorization) == 401


async def test_two_authorization_headers_are_refused(stack: Stack) -> None:
    headers = [("Authorization", f"Bearer {KEYS[name]}") for name in ("op", "ada")]
    async with stack.client("") as client, client.get("/v1/jobs", headers=headers) as answer:
        assert answer.status == 401


async def test_a_tenant_has_two_live_keys_and_one_is_revoked_within_five_seconds(
    stack: Stack,
) -> None:
    for name in ("old", "new"):
        KEYS[name] = f"rotated-{name}.secret-{name}"
        await stack.append(
            "access",
            0,
            KeyCreated(
                key_id=f"rotated-{name}",
                sha256=hash_secret(f"secret-{name}"),
                role="submitter",
                tenant="ada",
            ),
        )
    async with timeout(PATIENCE_S):
        while {await status_of(stack, "GET", "/v1/jobs", n) for n in ("old", "new")} != {200}:
            await sleep(0.05)
    await stack.append("access", 0, KeyRevoked(key_id="rotated-old"))
    async with timeout(PATIENCE_S):
        while await status_of(stack, "GET", "/v1/jobs", "old") != 401:
            await sleep(0.05)
    assert await status_of(stack, "GET", "/v1/jobs", "new") == 200

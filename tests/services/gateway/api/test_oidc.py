"""The API with tokens and keys: a real gateway and a real identity provider."""

from __future__ import annotations

from pathlib import Path

from tests.services.gateway.stack import Stack, as_gateway, ready, start_gateway
from tests.shared.oidc.identity import AUDIENCE, ISSUER, Provider


async def test_the_api_accepts_tokens_and_still_keys_without_the_provider(
    stack: Stack, idp: Provider, tmp_path: Path
) -> None:
    roles = "submitter=submitter,boss=admin"
    running, url = start_gateway(
        tmp_path,
        stack.kafka,
        as_gateway(stack.dsn),
        BERTH_OIDC_ISSUER=ISSUER,
        BERTH_OIDC_AUDIENCE=AUDIENCE,
        BERTH_OIDC_KEYS=idp.url,
        BERTH_OIDC_ROLES=roles,
        BERTH_OIDC_CA=str(tmp_path / "ca.crt"),
    )
    there = Stack(stack.kafka, url, stack.dsn, tmp_path, stack.ledgers, stack.broker)
    try:
        await ready(url)
        idp.status = 503
        assert (await with_token(there, idp.token(), once=True))[0] == 503
        assert (await there.call("GET", "/v1/jobs"))[0] == 200
        idp.status = 200
        assert (await with_token(there, idp.token()))[0] == 200
        await what_tokens_may(there, idp)
        idp.status = 503
        assert (await with_token(there, idp.token()))[0] == 200
    finally:
        running.stop()
    log = running.log.read_bytes()
    assert b"eyJ" not in log and b"Traceback" not in log


async def what_tokens_may(there: Stack, idp: Provider) -> None:
    status, content = await with_token(there, idp.token(), "POST", "/v1/jobs", {"name": "t"})
    assert status == 202
    command = await there.command(str(content["command_id"]))
    assert command is not None and command["tenant"] == "ada"
    body = {"name": "t", "tenant": "bob"}
    status, content = await with_token(there, idp.token(), "POST", "/v1/jobs", body)
    assert (status, content["reason"]) == (403, "tenant_mismatch")
    assert (await with_token(there, idp.token(tenant="ghost")))[0] == 403
    assert (await with_token(there, idp.token(role="root")))[0] == 403
    assert (await with_token(there, idp.token(aud="x")))[0] == 401
    assert (await with_token(there, idp.token(role="boss"), "DELETE", "/v1/keys/none"))[0] == 202
    assert (await with_token(there, idp.token(), "DELETE", "/v1/keys/none"))[0] == 403


async def with_token(
    there: Stack,
    token: str,
    method: str = "GET",
    path: str = "/v1/jobs",
    body: object = None,
    *,
    once: bool = False,
) -> tuple[int, dict[str, object]]:
    headers = {"Authorization": f"Bearer {token}"}
    status, content, _ = await there.call(method, path, body, key="", headers=headers, once=once)
    return status, content

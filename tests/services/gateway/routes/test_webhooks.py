"""Webhooks, users and their addresses by REST: a real gateway with the real access and Postgres."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import pytest

from shared.bus.hosting.access import read_access
from shared.contracts.access import KeyCreated
from shared.contracts.keys import hash_secret
from shared.contracts.pools import RELEASE, PoolConfigured
from shared.contracts.secrets import SIGNING
from shared.ledger.partition import TP
from shared.process.connection import Connection
from shared.secrets.secret_box import open_value
from shared.secrets.secret_keys import FILE, SecretKeys
from tests.broker_clients import log_of
from tests.services.gateway.routes.test_secrets import Site
from tests.services.gateway.stack import (
    KEYS,
    fill_access,
    ready,
    start_access,
    start_broker,
    start_gateway,
)

pytestmark = pytest.mark.process
KEYS.setdefault("alice", "alice-key.s7")
HOOK = {"name": "ci", "url": "https://hooks.example.org/x", "events": ["failed"]}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, gateway_dsn: str) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("webhooks")
    broker, kafka = start_broker(folder)
    asyncio.run(_fill(kafka))
    access = start_access(folder, kafka)
    gateway, url = start_gateway(folder, kafka, gateway_dsn)
    try:
        asyncio.run(ready(url))
        yield Site((url, url), kafka, folder)
    finally:
        for running in (gateway, access, broker):
            running.stop()


async def _fill(kafka: str) -> None:
    ledgers = await fill_access(kafka)
    bus = log_of(Connection(kafka, idempotent=False))
    ledgers.bus = bus
    key_id, _, secret = KEYS["alice"].rpartition(".")
    alice = KeyCreated(
        key_id=key_id, sha256=hash_secret(secret), role="submitter", tenant="ada", user="alice"
    )
    pools = (
        PoolConfigured(pool=p, partition=n, release=RELEASE) for n, p in ((1, "main"), (2, "side"))
    )
    await ledgers.append("access", 0, *pools, alice)
    await bus.stop()


async def test_a_webhook_is_created_listed_tested_and_deleted(site: Site) -> None:
    status, receipt = await site.call("POST", "/v1/webhooks", HOOK)
    assert status == 202 and receipt["secret"].startswith("whsec_")
    assert (receipt["tenant"], receipt["name"]) == ("ada", "ci")
    again, problem = await site.call("POST", "/v1/webhooks", HOOK)
    assert (again, problem["reason"]) == (409, "webhook_exists")
    status, page = await site.call("GET", "/v1/webhooks", key="ada-view")
    (row,) = page["items"]
    assert (row["id"], row["url"], row["events"]) == ("ada/ci", HOOK["url"], ["failed"])
    assert (row["delivered"], row["test_result"]) == (0, "")
    assert "secret" not in row and "sealed" not in row
    change = {"url": "https://b.example.org/"}
    assert (await site.call("PATCH", "/v1/webhooks/ci", change))[0] == 202
    _, page = await site.call("GET", "/v1/webhooks", key="ada-view")
    (changed,) = page["items"]
    assert changed == {**row, **change}
    assert (await site.call("POST", "/v1/webhooks/ci/test"))[0] == 202
    assert (await site.call("DELETE", "/v1/webhooks/ci"))[0] == 202
    assert (await site.call("DELETE", "/v1/webhooks/ci"))[0] == 404
    assert (await site.call("POST", "/v1/webhooks/ci/test"))[0] == 404


async def test_a_user_is_registered_listed_changed_and_deleted_with_its_keys(site: Site) -> None:
    query, bounds = "?tenant=ada", {"max_job_gpus": 2}
    key = {"key_id": "eve-key", "user": "eve"}
    assert (await site.call("POST", "/v1/tenants/ada/keys", key, key="root"))[0] == 202
    body = {"user": "eve", **bounds}
    for sender, path, status in (
        ("ada", "/v1/users", 403),
        ("root", "/v1/users", 422),
        ("root", f"/v1/users{query}", 202),
        ("root", f"/v1/users{query}", 202),
    ):
        assert (await site.call("POST", path, body, key=sender))[0] == status, (sender, path)
    status, problem = await site.call("POST", f"/v1/users{query}", {"user": "eve"}, key="root")
    assert (status, problem["reason"]) == (409, "user_exists")
    row = await _user(site, "eve")
    assert (row["id"], row["registered"], row["keys"]) == ("ada/eve", True, ["eve-key"])
    assert row["bounds"]["max_job_gpus"] == 2 and row["use"]["open_jobs"] == 0
    assert not (await _user(site, "alice"))["registered"], "a key names it alone"
    change = {"max_open_jobs": 3, "if_version": row["version"]}
    assert (await site.call("PATCH", f"/v1/users/eve{query}", change, key="root"))[0] == 202
    assert (await site.call("PATCH", f"/v1/users/eve{query}", change, key="root"))[0] == 202
    late = {"max_open_jobs": 4, "if_version": row["version"]}
    status, problem = await site.call("PATCH", f"/v1/users/eve{query}", late, key="root")
    assert (status, problem["reason"]) == (409, "version_conflict")
    assert (await _user(site, "eve"))["bounds"] == {**row["bounds"], "max_open_jobs": 3}
    status, problem = await site.call("PATCH", f"/v1/users/carl{query}", late, key="root")
    assert (status, problem["reason"]) == (404, "unknown_user")
    claim = {"spec": {"name": "x", "user": "eve", "gang": {"gpus_per_worker": 1}}}
    status, problem = await site.call("POST", "/v1/jobs", claim)
    assert (status, problem["reason"]) == (403, "not_permitted")
    assert "eve is a registered user with keys of its own" in str(problem)
    assert (await site.call("DELETE", f"/v1/users/eve{query}", key="root"))[0] == 202
    assert (await site.call("DELETE", f"/v1/users/eve{query}", key="root"))[0] == 404
    assert await _user(site, "eve") == {}


async def _user(site: Site, user: str) -> dict[str, Any]:
    status, page = await site.call("GET", "/v1/users", key="ada-view")
    assert status == 200, page
    return next((row for row in page["items"] if row["user"] == user), {})


async def test_a_secret_that_the_sender_made_is_kept_and_not_repeated(site: Site) -> None:
    given = "whsec_" + base64.b64encode(bytes(24)).decode()
    status, receipt = await site.call(
        "POST", "/v1/webhooks", {**HOOK, "name": "given", "secret": given}
    )
    assert (status, receipt["secret"]) == (202, None)
    bus = log_of(Connection(site.kafka, idempotent=False))
    view = await read_access(bus)
    await bus.stop()
    stored = view.secrets.get("ada", SIGNING + "given")
    assert stored is not None
    assert open_value(SecretKeys(site.folder / FILE), stored) == given


@pytest.mark.parametrize("secret", ["mine", "whsec_", "whsec_c2hvcnQ=", "whsec_" + "é" * 32])
async def test_what_is_no_signing_secret_is_refused_and_not_repeated(
    site: Site, secret: str
) -> None:
    status, problem = await site.call("POST", "/v1/webhooks", {**HOOK, "secret": secret})
    assert status == 422 and "must be whsec_ and 24 to 64 bytes in base64" in str(problem)
    assert f"'{secret}'" not in str(problem)


async def test_a_tenant_sees_and_changes_its_own_webhooks_alone(site: Site) -> None:
    assert (await site.call("POST", "/v1/webhooks", {**HOOK, "name": "own"}, key="bob"))[0] == 202
    _, page = await site.call("GET", "/v1/webhooks")
    assert "bob/own" not in [row["id"] for row in page["items"]]
    assert (await site.call("DELETE", "/v1/webhooks/own"))[0] == 404
    assert (await site.call("PATCH", "/v1/webhooks/own", {"events": ["started"]}))[0] == 404
    stolen = {"tenant": "bob", "url": "https://eve.example.org/"}
    assert (await site.call("PATCH", "/v1/webhooks/own", stolen))[0] == 422
    assert (await site.call("GET", "/v1/webhooks?tenant=bob"))[0] == 403
    _, page = await site.call("GET", "/v1/webhooks?tenant=bob", key="op")
    assert [row["id"] for row in page["items"]] == ["bob/own"]


@pytest.mark.parametrize(
    "body",
    [
        {**HOOK, "url": "ftp://example.org"},
        {**HOOK, "url": "https://user:pw@example.org/"},
        {**HOOK, "events": []},
        {**HOOK, "events": ["done"]},
        {**HOOK, "name": "No"},
        {**HOOK, "pools": ["nowhere"]},
        {**HOOK, "secret": "mine"},
    ],
)
async def test_another_body_is_refused(site: Site, body: dict[str, object]) -> None:
    assert (await site.call("POST", "/v1/webhooks", body))[0] == 422


async def test_names_that_berth_keeps_are_no_secrets_of_jobs(site: Site) -> None:
    await site.call("POST", "/v1/webhooks", {**HOOK, "name": "kept"})
    assert (await site.set("berth.webhook.kept", "mine"))[0] == 422
    assert (await site.call("DELETE", "/v1/secrets/berth.webhook.kept"))[0] == 422
    status, problem = await site.submit("berth.webhook.kept")
    assert status == 422 and "must not begin with berth." in str(problem)
    assert "ada/berth.webhook.kept" not in await site.listed()


async def test_mails_need_an_authenticated_user_with_an_address(site: Site) -> None:
    spec = {"name": "x", "gang": {"gpus_per_worker": 1}, "notify": ["failed"]}
    status, problem = await site.call("POST", "/v1/jobs", {"spec": spec})
    assert status == 403 and "authenticated user" in str(problem)
    status, problem = await site.call("POST", "/v1/jobs", {"spec": spec}, key="alice")
    assert status == 403 and "no address" in str(problem)
    address = {"address": "alice@example.org"}
    assert (await site.call("PUT", "/v1/users/alice/mail", address))[0] == 403
    assert (await site.call("PUT", "/v1/users/alice/mail", address, key="alice"))[0] == 202
    assert (await site.call("POST", "/v1/jobs", {"spec": spec}, key="alice"))[0] == 202
    path = "/v1/users/alice/mail?tenant=ada"
    assert (await site.call("DELETE", path, key="op"))[0] == 202
    assert (await site.call("DELETE", path, key="op"))[0] == 404
    bus = log_of(Connection(site.kafka, idempotent=False))
    feed = await bus.feed({TP("access", 0): 0})
    values = b""
    while polled := await feed.poll(1.0):
        values += b"".join(entry.value or b"" for entry in polled[TP("access", 0)])
    await feed.close()
    await bus.stop()
    assert b"berth.mail.alice" in values and b"alice@example.org" not in values

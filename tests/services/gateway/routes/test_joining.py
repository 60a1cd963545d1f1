"""Nodes join, are approved, renew and are revoked: a real gateway with the real access service."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

import aiohttp
import pytest

from cli.errors import UNREACHABLE
from services.gateway.limits.join_limits import FAILED
from shared.contracts.keys import hash_secret
from shared.contracts.pools import PoolConfigured
from shared.ledger.partition import TP
from shared.process.connection import Connection
from tests.broker_clients import log_of
from tests.e2e.stand import eventually
from tests.patience import PATIENCE_S
from tests.services.gateway.stack import (
    KEYS,
    fill_access,
    ready,
    start_access,
    start_broker,
    start_gateway,
)

pytestmark = pytest.mark.process
EXECUTOR = "https://10.0.0.1:7443"
CA = "-----BEGIN CERTIFICATE-----\n"


class Site(NamedTuple):
    """Addresses of the gateway and the broker."""

    url: str
    kafka: str

    async def post(
        self, path: str, body: object, bearer: str = ""
    ) -> tuple[int, dict[str, Any], str]:
        """Return status, body and the header Retry-After."""
        return await self._call("POST", path, bearer, json=body)

    async def _call(
        self, method: str, path: str, bearer: str, **options: Any
    ) -> tuple[int, Any, str]:
        """Make the request, again while a busy broker lets it fail."""
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        async with (
            asyncio.timeout(PATIENCE_S),
            aiohttp.ClientSession(self.url, headers=headers) as client,
        ):
            while True:
                async with client.request(method, path, **options) as answer:
                    if answer.status != 503:
                        retry_after = answer.headers.get("Retry-After", "")
                        return answer.status, await answer.json(), retry_after
                await asyncio.sleep(0.1)

    async def token(self, **fields: object) -> str:
        body = {"pool": "nodes", "approve": True, **fields}
        status, receipt, _ = await self.post("/v1/nodes/tokens", body, KEYS["op"])
        assert status == 202, receipt
        return str(receipt["token"])

    async def join(self, token: str, node_id: str, secret: str, **more: str) -> tuple[int, Any]:
        body = {"node_id": node_id, "token": token, "credential_sha256": hash_secret(secret)}
        status, answer, _ = await self.post("/agent/v1/join", {**body, **more})
        return status, answer

    async def renew(self, bearer: str, secret: str, **more: object) -> tuple[int, Any]:
        body = {"credential_sha256": hash_secret(secret), "field_of_a_newer_agent": 1, **more}
        status, answer, _ = await self.post("/agent/v1/renew", body, bearer)
        return status, answer

    async def shown(self, node_id: str) -> dict[str, Any]:
        return dict((await self._call("GET", f"/v1/enrolments/{node_id}", KEYS["op"]))[1])

    async def listed(self, pool: str) -> tuple[int, Any]:
        params = {"pool": pool}
        return (await self._call("GET", "/v1/enrolments", KEYS["op"], params=params))[:2]

    async def until(self, node_id: str, state: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while (await self.shown(node_id)).get("state") != state:
                await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("joining")
    broker, kafka = start_broker(folder)
    asyncio.run(_fill(kafka))
    access = start_access(folder, kafka)
    ca = folder / "ca.crt"
    ca.write_text(CA)
    gateway, url = start_gateway(
        folder, kafka, "", BERTH_NODE_EXECUTORS=EXECUTOR, BERTH_TLS_CA=str(ca)
    )
    try:
        asyncio.run(ready(url))
        yield Site(url, kafka)
    finally:
        for running in (gateway, access, broker):
            running.stop()


async def _fill(kafka: str) -> None:
    ledgers = await fill_access(kafka)
    ledgers.bus = log_of(Connection(kafka, idempotent=False))
    await ledgers.append(
        "access", 0, PoolConfigured(pool="nodes", partition=0, backends=("agent",))
    )
    await ledgers.bus.stop()


@pytest.fixture
async def token(site: Site) -> AsyncIterator[str]:
    yield await site.token()


async def test_a_node_joins_and_learns_where_its_executors_are(site: Site, token: str) -> None:
    status, joined = await site.join(token, "n-1", "one", hardware="hw")
    assert status == 200
    assert joined.pop("expires_at") > 1_700_000_000_000
    installation = joined.pop("installation")
    assert len(installation) == 12
    assert joined.pop("ca") == CA
    assert joined == {"node_id": "n-1", "pool": "nodes", "approved": True, "executors": [EXECUTOR]}
    status, renewed = await site.renew("n-1.one", "two", hardware="hw")
    assert (status, renewed["installation"], renewed["ca"]) == (200, installation, CA)


async def test_identities_are_listed_by_pool(site: Site, token: str) -> None:
    assert (await site.join(token, "n-listed", "one"))[0] == 200
    status, page = await site.listed("nodes")
    assert status == 200 and "n-listed" in [row["node_id"] for row in page["items"]]
    assert await site.listed("main") == (200, {"items": [], "next": None})
    status, problem = await site.listed("ghost")
    assert (status, problem["errors"][0]["field"]) == (422, "pool")


async def test_a_join_is_repeated_without_harm(site: Site) -> None:
    token = await site.token(max_uses=1)
    first = await site.join(token, "n-2", "one")
    assert first[0] == 200 and await site.join(token, "n-2", "one") == first
    status, problem = await site.join(token, "n-3", "one")
    assert (status, problem["reason"]) == (403, "token_used_up")


async def test_a_second_machine_cannot_take_a_name(site: Site, token: str) -> None:
    assert (await site.join(token, "n-4", "one", hardware="a"))[0] == 200
    status, problem = await site.join(token, "n-4", "two", hardware="b")
    assert (status, problem["reason"]) == (409, "node_exists")
    status, problem = await site.join(token, "n-4", "one", hardware="b")
    assert (status, problem["reason"]) == (409, "machine_changed")


async def test_a_reinstalled_machine_takes_its_name_with_a_token_that_may_replace(
    site: Site, token: str
) -> None:
    assert (await site.join(token, "n-r", "one", hardware="a"))[0] == 200
    assert (await site.join(token, "n-r", "two", hardware="a"))[0] == 409
    words = ("--pool", "nodes", "--approve", "--replace")
    replacing = berth(site, "nodes", "token", *words).strip()
    assert (await site.join(replacing, "n-r", "two", hardware="b"))[0] == 409
    assert (await site.join(replacing, "n-r", "two", hardware="a"))[0] == 200
    status, problem = await site.renew("n-r.one", "three")
    assert (status, problem["reason"]) == (403, "node_revoked")
    status, problem = await site.renew("n-r.two", "three")
    assert (status, problem["reason"]) == (409, "machine_unknown")
    assert (await site.renew("n-r.two", "three", hardware="a"))[0] == 200


async def test_a_copied_disk_does_not_renew(site: Site, token: str) -> None:
    assert (await site.join(token, "n-c", "one", hardware="a"))[0] == 200
    status, problem = await site.renew("n-c.one", "two", hardware="b", former_hardware=["c"])
    assert (status, problem["reason"]) == (409, "machine_changed")
    assert (await site.renew("n-c.one", "two", hardware="b", former_hardware=["a"]))[0] == 200


async def test_a_node_waits_for_approval_where_the_token_asks_for_it(site: Site) -> None:
    token = await site.token(approve=False)
    status, joined = await site.join(token, "n-5", "one")
    assert status == 200 and not joined["approved"]
    status, problem = await site.renew("n-5.one", "two")
    assert (status, problem["reason"]) == (403, "node_not_approved")
    assert (await site.post("/v1/nodes/n-5/approve", {}, KEYS["op"]))[0] == 202
    await site.until("n-5", "approved")
    assert (await site.renew("n-5.one", "two"))[0] == 200


async def test_a_renewal_gives_a_new_credential_and_a_revocation_ends_both(
    site: Site, token: str
) -> None:
    await site.join(token, "n-6", "one")
    assert (await site.renew("n-6.one", "two"))[0] == 200
    assert (await site.renew("n-6.two", "three"))[0] == 200
    assert (await site.post("/v1/nodes/n-6/revoke", {"reason": "sold"}, KEYS["op"]))[0] == 202
    await site.until("n-6", "revoked")
    for secret in ("two", "three"):
        status, problem = await site.renew(f"n-6.{secret}", "four")
        assert (status, problem["reason"]) == (403, "node_revoked")
    assert (await site.join(token, "n-6", "four"))[0] == 200


async def test_the_list_shows_states_and_no_hash(site: Site, token: str) -> None:
    await site.join(token, "n-7", "one", hardware="hw")
    row = await site.shown("n-7")
    assert (row["pool"], row["state"], row["hardware"]) == ("nodes", "approved", "hw")
    assert hash_secret("one") not in str(row)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"node_id": "N 1"}, "node_id"),
        ({"credential_sha256": "the secret itself"}, "credential_sha256"),
        ({"token": ""}, "token"),
    ],
)
async def test_a_malformed_join_names_the_field_and_repeats_no_secret(
    site: Site, body: dict[str, str], field: str
) -> None:
    whole = {"node_id": "n-8", "token": "t.s", "credential_sha256": hash_secret("one"), **body}
    status, problem, _ = await site.post("/agent/v1/join", whole)
    assert status == 422 and [fault["field"] for fault in problem["errors"]] == [field]
    assert "the secret itself" not in str(problem)


async def test_no_secret_is_in_any_record(site: Site, token: str) -> None:
    await site.join(token, "n-9", "s3cret-of-the-node")
    bus = log_of(Connection(site.kafka, idempotent=False))
    for topic in ("access", "access.commands"):
        feed = await bus.feed({TP(topic, 0): 0})
        entries = (await feed.poll(5.0, 5000))[TP(topic, 0)]
        written = b"".join(entry.value or b"" for entry in entries)
        await feed.close()
        assert b"node.enroll" in written
        assert b"s3cret" not in written and token.rpartition(".")[2].encode() not in written
    await bus.stop()


def berth(site: Site, *words: str) -> str:
    """Return what the command prints, as an operator on any machine runs it.

    It is repeated while a busy broker lets it fail.
    """

    def ended() -> subprocess.CompletedProcess[str] | None:
        ran = subprocess.run(
            [sys.executable, "-m", "cli", *words],
            env={**os.environ, "BERTH_URL": site.url, "BERTH_KEY": KEYS["op"]},
            capture_output=True,
            text=True,
            check=False,
        )
        return None if ran.returncode == UNREACHABLE else ran

    ran = eventually(ended)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


async def test_the_command_line_makes_tokens_and_lists_identities(site: Site) -> None:
    token = berth(site, "nodes", "token", "--pool", "nodes", "--ttl", "10m", "--uses", "1").strip()
    status, joined = await site.join(token, "n-cli", "one")
    assert status == 200 and not joined["approved"]
    header, *rows = berth(site, "nodes", "list", "--enrolled").splitlines()
    assert header.split() == ["NODE", "POOL", "IDENTITY", "TOKEN", "EXPIRES"]
    [row] = [row.split() for row in rows if row.startswith("n-cli ")]
    assert row[:4] == ["n-cli", "nodes", "pending", token.partition(".")[0]]


async def test_wrong_tokens_are_limited_by_address(site: Site, token: str) -> None:
    """The last test of this module: afterwards this address has to wait."""
    statuses = [401]
    while statuses[-1] == 401:  # on a busy machine the bucket refills a little meanwhile
        statuses.append((await site.join("t.guess", "n-10", "one"))[0])
        assert len(statuses) < 100 * FAILED.burst
    assert statuses[-1] == 429
    body = {"node_id": "n-10", "token": token, "credential_sha256": hash_secret("one")}
    status, problem, retry_after = await site.post("/agent/v1/join", body)
    assert (status, problem["reason"]) == (429, "rate_limited") and int(retry_after) >= 1

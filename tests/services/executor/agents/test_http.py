"""Bounds of the HTTP side: who may ask, how much, how often, and in which form."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.executor.agents import http, limits, server
from shared.http import bodies
from shared.http.rate import Rate
from tests.patience import PATIENCE_S
from tests.services.executor.agents.installation import Installation, enrolled


@pytest.fixture
def site(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


async def test_no_request_is_read_without_a_valid_credential(site: Installation) -> None:
    site.access.write([enrolled("pending", approved=False), enrolled("old", expires_at=1)])
    async with site.serving():
        for node_id, secret, status, reason in (
            ("n1", "wrong", 401, "unknown_credential"),
            ("ghost", "s3", 401, "unknown_credential"),
            ("pending", "s3", 403, "node_not_approved"),
            ("old", "s3", 401, "credential_expired"),
        ):
            async with site.agent(node_id, secret) as agent:
                answered, problem = await agent.post("hello", b"not even JSON")
                assert (answered, problem["reason"]) == (status, reason), node_id


async def test_wrong_credentials_are_limited_by_address(
    site: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "FAILED", Rate(0.001, 3))
    async with site.serving(), site.agent("n1", "wrong") as guess, site.agent("n1") as agent:
        statuses = [(await guess.post("hello", {}))[0] for _ in range(5)]
        assert statuses == [401, 401, 401, 429, 429]
        await agent.hello()


@pytest.mark.parametrize(
    ("name", "body", "detail"),
    [
        ("hello", b"[]", "body: "),
        ("hello", b"{", "body: "),
        ("orders", {"session_id": "x", "after": {}}, "session_id: 'x'; "),
        ("orders", {"session_id": "a" * 32, "after": {"seq": -1}}, "after.seq: -1; "),
        ("orders", {"session_id": "a" * 32, "after": {}, "wait_s": 61}, "wait_s: 61; "),
        ("reports", {"session_id": "a" * 32}, "incarnation: not a scalar; Field required"),
    ],
)
async def test_a_malformed_message_names_field_value_and_rule(
    site: Installation, name: str, body: object, detail: str
) -> None:
    async with site.serving(), site.agent("n1") as agent:
        status, problem = await agent.post(name, body)
    assert (status, problem["reason"]) == (400, "malformed")
    assert problem["detail"].startswith(detail)


async def test_an_unknown_path_is_not_there(site: Installation) -> None:
    async with site.serving(), site.agent("n1") as agent:
        assert (await agent.post("goodbye", {}))[0] == 404


async def test_an_oversized_body_is_refused_by_its_length_and_by_its_bytes(
    site: Installation,
) -> None:
    large = b"x" * (http.REQUESTS["orders"].max_bytes + 1)

    async def chunks() -> object:
        yield large

    async with site.serving(), site.agent("n1") as agent:
        assert (await agent.post("orders", large))[0] == 413
        async with agent.client.post(
            "/agent/v1/orders", data=chunks(), headers=agent.headers
        ) as answer:
            assert answer.status == 413


async def test_an_agent_with_one_request_at_a_time_waits_and_is_not_refused(
    site: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REQUESTS", Rate(200, 2))
    monkeypatch.setattr(limits, "HEARTBEATS", Rate(200, 2))
    async with site.serving(), site.agent("n1") as agent:
        await agent.hello()
        for sent_ms in range(20):
            answers = await asyncio.gather(
                agent.orders(),
                agent.reports(),
                agent.post("stream", {"session_id": agent.session_id}),
            )
            assert {status for status, _ in answers} <= {200, 204}, answers
            assert await agent.send_heartbeat(sent_ms) == 204


async def test_a_node_that_floods_is_refused_and_others_are_not(
    site: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REQUESTS", Rate(0.001, 20))
    async with site.serving(), site.agent("n1") as flood, site.agent("n2") as calm:
        await flood.hello()
        statuses = {(await flood.post("orders", b"{}"))[0] for _ in range(25)}
        assert statuses == {400, 429}
        assert await flood.send_heartbeat(1) == 204, "heartbeats have a share of their own"
        await calm.hello()
        assert (await calm.orders())[0] == 200


async def test_no_value_of_a_heartbeat_ends_the_executor(site: Installation) -> None:
    async with site.serving(), site.agent("n1") as bad, site.agent("n2") as good:
        await bad.hello()
        await good.hello()
        assert [await bad.send_heartbeat(2**63), await bad.send_heartbeat(-1)] == [400, 400]
        assert await good.send_heartbeat(5) == 204


async def test_refused_bodies_delay_no_heartbeat(site: Installation) -> None:
    large = b"x" * (http.REQUESTS["reports"].max_bytes + 1)
    async with site.serving(), site.agent("n1") as agent:
        await agent.hello()
        statuses = {(await agent.post("reports", large))[0] for _ in range(30)}
        assert statuses == {413} and await agent.send_heartbeat(1) == 204


async def test_reports_are_limited_per_node(
    site: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REPORTS", Rate(1, 1000))
    reports = [{"kind": "stopped", "allocation_id": "1/0/0/0"}] * 500
    async with site.serving(), site.agent("n1") as agent:
        await agent.hello()
        statuses = []
        for number in range(4):
            statuses.append((await agent.reports(*reports, first_n=1 + 500 * number))[0])
        assert statuses[0] == 200 and statuses[-1] == 429


async def test_a_slow_client_delays_no_other_and_is_refused(
    site: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BODY_TIMEOUT_S", 0.2)
    async with site.serving(), site.agent("n2") as calm:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(
            b"POST /agent/v1/hello HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer n1.s3\r\n"
            b"Content-Length: 1000\r\n\r\n{"
        )
        await writer.drain()
        await calm.hello()
        assert await calm.send_heartbeat(1) == 204
        async with asyncio.timeout(PATIENCE_S):
            assert b" 408 " in await reader.readline()
        writer.close()


@pytest.mark.parametrize("sent", [b"", b"POST /agent/v1/hello HTTP/1.1\r\nHost: x\r\n"])
async def test_a_connection_without_a_whole_header_is_closed(
    site: Installation, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "IDLE_S", 0.2)
    async with site.serving():
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(sent)
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b""
        writer.close()

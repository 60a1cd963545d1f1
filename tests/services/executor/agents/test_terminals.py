"""Terminals at an executor: who may enter, which side is refused, and that bytes wait."""

from __future__ import annotations

import asyncio
import json
import secrets
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic_ns
from typing import Any

import aiohttp
import pytest

from berth_agent.node.connection.http import RequestFailed, parse_address
from berth_agent.node.connection.websocket import Closed, WebSocket
from infra.security import certificates
from services.executor.agents import terminals
from shared.contracts.attempts import JobCancelled, JobStarted
from shared.contracts.enrolment import NodeRevoked
from shared.contracts.keys import hash_secret
from shared.contracts.terminals import TerminalOpened
from shared.http.rate import Rate
from tests.patience import PATIENCE_S, until
from tests.services.executor.agents.installation import FAR_AT, Agent, Installation
from tests.services.executor.core.agents.history import ENQUEUED, PLACED, joined

STARTED = JobStarted(job_id="j", tenant="ada", attempt=1, master_port=4321)
TOKEN = "t" * 43
WANTED = {"command": ["sh"], "tty": True, "term": "xterm", "rows": 5, "columns": 9}


class Entry:
    """The gateway's side of a terminal."""

    def __init__(self, site: Installation, client: aiohttp.ClientSession) -> None:
        self.site = site
        self.client = client
        self.id = ""

    def open(self, **changes: object) -> str:
        """Have access record a terminal; return its id."""
        self.id = secrets.token_hex(16)
        opened = {
            "terminal_id": self.id,
            "job_id": "j",
            "tenant": "ada",
            "pool": "gpu",
            "worker": 1,
            "program": "sh",
            "opened_by": "key:k",
            "token_sha256": hash_secret(TOKEN),
            "admitted_until": FAR_AT,
            **changes,
        }
        self.site.access.write([TerminalOpened.model_validate(opened)])
        return self.id

    async def enter(self, token: str = TOKEN) -> aiohttp.ClientWebSocketResponse:
        headers = {"Authorization": f"Bearer {token}"}
        socket = await self.client.ws_connect(f"/terminals/v1/{self.id}", headers=headers)
        await socket.send_str(json.dumps(WANTED))
        return socket

    async def refused(self, token: str = TOKEN) -> str:
        """Return why the terminal is not opened."""
        socket = await self.enter(token)
        message = await socket.receive(timeout=PATIENCE_S)
        assert message.data[:1] == b"X", message
        await socket.close()
        return str(json.loads(message.data[1:])["reason"])


@pytest.fixture
def site(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


@asynccontextmanager
async def a_worker(site: Installation, agent: Agent, **hello: object) -> AsyncIterator[Entry]:
    """A gateway, and a job whose worker 1 runs on the node of the agent."""
    site.place()
    site.placement.write([STARTED])
    await agent.hello(**{"terminals": True, **hello})
    yield Entry(site, agent.client)


async def requested(agent: Agent) -> dict[str, Any]:
    """Return the terminal that the agent's poll brings."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            _, answer = await agent.orders(wait_s=5)
            for one in answer["terminals"]:
                return dict(one)


async def connected(
    agent: Agent, terminal_id: str, session_id: str = ""
) -> aiohttp.ClientWebSocketResponse:
    headers = {**agent.headers, "Berth-Session": session_id or agent.session_id}
    return await agent.client.ws_connect(f"/agent/v1/terminals/{terminal_id}", headers=headers)


async def test_bytes_go_both_ways_until_one_side_leaves(site: Installation) -> None:
    async with site.serving() as server, site.agent("n1") as agent, a_worker(site, agent) as entry:
        entry.open()
        user = await entry.enter()
        request = await requested(agent)
        assert request.pop("allocation_id").endswith("/1")
        assert request == {"terminal_id": entry.id, **WANTED}
        program = await connected(agent, entry.id)
        await user.send_bytes(b"Iabc")
        assert (await program.receive()).data == b"Iabc"
        await program.send_bytes(b"O" + b"x" * 60_000)
        assert len((await user.receive()).data) == 60_001
        await user.close()
        assert (await program.receive()).type is aiohttp.WSMsgType.CLOSE
        await until(lambda: len(server._terminals) == 0)


async def test_a_terminal_is_entered_once_and_by_its_token_alone(site: Installation) -> None:
    async with site.serving(), site.agent("n1") as agent, a_worker(site, agent) as entry:
        entry.open()
        for token in ("", "x", TOKEN + "x", hash_secret(TOKEN)):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await entry.enter(token)
            assert refused.value.status == 401
        user = await entry.enter()
        await requested(agent)
        with pytest.raises(aiohttp.WSServerHandshakeError) as again:
            await entry.enter()
        assert again.value.status == 401
        await user.close()
        entry.open(admitted_until=1)
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await entry.enter()
        entry.id = secrets.token_hex(16)
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await entry.enter()


async def test_wrong_credentials_of_an_address_are_limited_before_the_broker_is_asked(
    site: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is right does not count, also where the executor has to look for it."""
    async with site.serving() as server, site.agent("n1") as agent, a_worker(site, agent) as entry:
        asked = 0
        catch_up = server._terminals._catch_up

        async def counted() -> bool:
            nonlocal asked
            asked += 1
            return await catch_up()

        monkeypatch.setattr(server._terminals, "_catch_up", counted)

        async def status(token: str, terminal_id: str) -> int:
            entry.id = terminal_id
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await entry.enter(token)
            return refused.value.status

        for wrong in ("x", "0" * 31, "0" * 33, "A" * 32, "..%2f"):
            assert await status(TOKEN, wrong) == 401
        assert await status("", "0" * 32) == 401
        assert asked == 0
        server._api._failed.rate = Rate(0.001, 3)
        for _ in range(4):
            entry.open(tenant="bob")
            assert await entry.refused() == "worker_not_running"
        got = [await status(TOKEN, secrets.token_hex(16)) for _ in range(5)]
        assert got == [401, 401, 401, 429, 429] and 3 <= asked <= 7


async def test_a_tenant_has_half_the_places_of_a_node(
    site: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminals, "MOST_OF_NODE", 4)
    async with site.serving() as server, site.agent("n1") as agent, a_worker(site, agent) as entry:

        async def two() -> list[aiohttp.ClientWebSocketResponse]:
            users = []
            for _ in range(2):
                entry.open()
                users.append(await entry.enter())
            return users

        users = await two()
        entry.open()
        assert await entry.refused() == "rate_limited"
        # Those of another tenant fit in.
        for meeting in server._terminals._meetings.values():
            meeting.tenant = "bob"
        users += await two()
        for meeting in server._terminals._meetings.values():
            meeting.tenant = "bob"
        entry.open()
        assert await entry.refused() == "rate_limited"
        for user in users:
            await user.close()
        await until(lambda: len(server._terminals) == 0)
        monkeypatch.setattr(terminals, "MOST_OPEN", 4)
        monkeypatch.setattr(terminals, "MOST_OF_NODE", 100)
        users = await two()
        entry.open()
        assert await entry.refused() == "rate_limited"


async def test_a_message_without_a_byte_ends_it_and_small_ones_count(site: Installation) -> None:
    async with site.serving() as server, site.agent("n1") as agent, a_worker(site, agent) as entry:
        entry.open()
        user = await entry.enter()
        await requested(agent)
        program = await connected(agent, entry.id)
        buckets = server._terminals._buckets
        buckets.rate = Rate(0.001, 10 * terminals.LEAST_CHARGED)
        for _ in range(9):
            await program.send_bytes(b"O")
            assert (await user.receive(timeout=PATIENCE_S)).data == b"O"
        assert not buckets.wait_ns("n1", monotonic_ns())
        await program.send_bytes(b"O")
        await until(lambda: buckets.wait_ns("n1", monotonic_ns()) > 0)
        await program.send_bytes(b"")
        await user.close()
        entry.open()
        buckets.rate, buckets._full_at_ns = terminals.BYTES, {}
        user = await entry.enter()
        await requested(agent)
        program = await connected(agent, entry.id)
        await program.send_bytes(b"")
        assert (await user.receive(timeout=PATIENCE_S)).type is aiohttp.WSMsgType.CLOSE


async def test_no_other_node_enters_and_none_twice(site: Installation) -> None:
    async with (
        site.serving(),
        site.agent("n1") as agent,
        site.agent("n2") as other,
        a_worker(site, agent) as entry,
    ):
        await other.hello()
        entry.open()
        user = await entry.enter()
        await requested(agent)
        wrong = [(other, entry.id, ""), (agent, "0" * 32, ""), (agent, entry.id, "0" * 32)]
        for node, terminal_id, session in wrong:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await connected(node, terminal_id, session)
            assert refused.value.status in (404, 409)
        agent.headers = {"Authorization": "Bearer n1.wrong"}
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await connected(agent, entry.id)
        agent.headers = {"Authorization": "Bearer n1.s3"}
        await connected(agent, entry.id)
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await connected(agent, entry.id)
        await user.close()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tenant": "bob"}, "worker_not_running"),
        ({"job_id": "other"}, "worker_not_running"),
        ({"worker": 9}, "worker_not_running"),
        ({"worker": 0}, "not_here"),
        ({"pool": "elsewhere"}, "not_here"),
    ],
)
async def test_a_worker_that_is_not_there_is_refused(
    site: Installation, changes: dict[str, object], reason: str
) -> None:
    """Worker 0 runs on a node whose agent has no session here."""
    async with site.serving(), site.agent("n1") as agent, a_worker(site, agent) as entry:
        entry.open(**changes)
        assert await entry.refused() == reason


async def test_an_ended_job_and_an_earlier_agent_are_refused(site: Installation) -> None:
    async with site.serving() as server, site.agent("n1") as agent, a_worker(site, agent) as entry:
        await agent.hello(terminals=False)
        entry.open()
        assert await entry.refused() == "agent_too_old"
        await agent.hello(terminals=True)
        site.placement.write([JobCancelled(job_id="j", tenant="ada", reason="enough")])
        await until(lambda: not server._lanes["gpu"].state.jobs)
        entry.open()
        assert await entry.refused() == "worker_not_running"


async def test_a_job_that_measures_nodes_has_no_terminals(site: Installation) -> None:
    spec = ENQUEUED.spec.model_copy(update={"validates": ("n2", "n1")})
    measuring = ENQUEUED.model_copy(update={"spec": spec})
    async with site.serving(), site.agent("n1") as agent:
        site.placement.write([joined("n1"), joined("n2"), measuring])
        site.placement.write([PLACED])
        site.placement.write([STARTED])
        await agent.hello(terminals=True)
        entry = Entry(site, agent.client)
        entry.open()
        assert await entry.refused() == "measures_nodes"


async def test_an_agent_that_does_not_come_ends_it(
    site: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminals, "CONNECT_S", 0.2)
    async with site.serving(), site.agent("n1") as agent, a_worker(site, agent) as entry:
        entry.open()
        assert await entry.refused() == "node_not_connected"


async def test_a_revoked_node_loses_its_terminals(site: Installation) -> None:
    async with site.serving(), site.agent("n1") as agent, a_worker(site, agent) as entry:
        entry.open()
        user = await entry.enter()
        await requested(agent)
        await connected(agent, entry.id)
        site.access.write([NodeRevoked(node_id="n1", reason="stolen")])
        message = await user.receive(timeout=PATIENCE_S)
        assert message.type is aiohttp.WSMsgType.CLOSE


async def test_a_user_who_does_not_read_holds_the_program_up(site: Installation) -> None:
    async with site.serving(), site.agent("n1") as agent, a_worker(site, agent) as entry:
        entry.open()
        user = await entry.enter()
        await requested(agent)
        program = await connected(agent, entry.id)
        sent = 0
        with pytest.raises(TimeoutError):
            while True:
                async with asyncio.timeout(2):
                    await program.send_bytes(b"O" + bytes(32_000))
                sent += 32_001
        assert sent < 64 * 1024 * 1024
        # The executor serves all others meanwhile.
        assert await agent.send_heartbeat(1) == 204
        received = 0
        async with asyncio.timeout(PATIENCE_S):
            while received < sent:
                received += len((await user.receive()).data)
        await user.close()


@pytest.mark.parametrize("tls", [False, True])
async def test_the_agents_own_client_speaks_to_it(tmp_path: Path, tls: bool) -> None:
    settings: dict[str, object] = {}
    trust: ssl.SSLContext | None = None
    if tls:
        folder = tmp_path / "tls"
        certificates.make(folder)
        settings = {"tls_cert": folder / "api.crt", "tls_key": folder / "api.key"}
        trust = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    site = Installation(tmp_path, **settings)
    async with (
        site.serving(),
        site.agent("n1", trust=trust or True) as agent,
        a_worker(site, agent) as entry,
    ):
        entry.open()
        user = await entry.enter()
        await requested(agent)
        url = parse_address(f"{'https' if tls else 'http'}://127.0.0.1:{site.port}")
        headers = {**agent.headers, "Berth-Session": agent.session_id}

        def connect(terminal_id: str) -> WebSocket:
            path = f"/agent/v1/terminals/{terminal_id}"
            return WebSocket(url, trust, path, headers, PATIENCE_S)

        with pytest.raises(RequestFailed) as refused:
            await asyncio.to_thread(connect, "0" * 32)
        assert (refused.value.status, refused.value.reason) == (404, "unknown_terminal")
        socket = await asyncio.to_thread(connect, entry.id)
        for size in (0, 1, 125, 126, 65_000, 65_536):
            socket.send(b"O" + b"z" * size)
            while socket.unsent:
                socket.flush()
                await asyncio.sleep(0.01)
            message = await user.receive(timeout=PATIENCE_S)
            assert message.data == b"O" + b"z" * size
            await user.send_bytes(message.data)
            got: list[bytes] = []
            async with asyncio.timeout(PATIENCE_S):
                while not got:
                    got = socket.receive()
                    await asyncio.sleep(0.01)
            assert got == [message.data]
        await user.close()
        with pytest.raises(Closed):
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    socket.receive()
                    await asyncio.sleep(0.01)
        socket.close()

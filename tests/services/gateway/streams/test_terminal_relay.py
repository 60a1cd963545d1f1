"""A terminal between its user and an executor: limits, users who do not read, hostile nodes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import WSMsgType, web
from starlette.types import Message

from infra.machine.process import free_ports
from services.gateway.responses.problem import ApiError
from services.gateway.streams import terminal_relay
from services.gateway.streams.terminal_entry import entered
from services.gateway.streams.terminal_relay import Account, Limits, TerminalResponse, frame
from shared.contracts.terminals import END, STARTED
from tests.patience import PATIENCE_S
from tests.services.gateway.wired import SETTINGS

Script = Callable[[web.WebSocketResponse], Awaitable[object]]
OPEN = Limits(PATIENCE_S, PATIENCE_S, lambda: True)


@asynccontextmanager
async def executor(script: Script) -> AsyncIterator[str]:
    """Serve terminals by a script; yield the address."""

    async def serve(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=1 << 20)
        await socket.prepare(request)
        assert (await socket.receive()).type is WSMsgType.TEXT
        await script(socket)
        return socket

    app = web.Application()
    app.router.add_get("/terminals/v1/{id}", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    [port] = free_ports(1)
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


class User:
    """Takes the response; `reads` is cleared for one who does not."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.is_over = False
        self.reads = asyncio.Event()
        self.reads.set()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.body":
            await self.reads.wait()
        self.body += message.get("body", b"")
        self.is_over = message.get("more_body") is False

    def end(self) -> dict[str, object]:
        """Return the last frame, an end."""
        head = self.body.rindex(b'{"reason"') - 5
        assert self.body[head : head + 1] == END
        return dict(json.loads(self.body[head + 5 :]))


async def relayed(
    script: Script,
    limits: Limits = OPEN,
    user: User | None = None,
    typed: tuple[tuple[bytes, bytes], ...] = (),
) -> tuple[Account, User]:
    """Relay a terminal until it ends; return what is noted."""
    user, noted = user or User(), []

    async def on_end(account: Account) -> None:
        noted.append(account)

    async def input_frames() -> AsyncIterator[tuple[bytes, bytes]]:
        for one in typed:
            yield one
        await asyncio.sleep(2 * PATIENCE_S)

    async def begun(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(STARTED)
        await script(socket)

    async with executor(begun) as url, asyncio.timeout(PATIENCE_S):
        settings = SETTINGS.model_copy(update={"terminal_executors": url})
        async with entered(settings, "0" * 32, "token", {}) as connected:
            response = TerminalResponse(connected, input_frames(), limits, on_end)
            await response({"type": "http"}, asyncio.Event().wait, user.send)  # type: ignore[arg-type]
    [account] = noted
    return account, user


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_relay, "LAST_S", 0.2)
    monkeypatch.setattr(terminal_relay, "LOOK_EVERY_S", 0.05)


async def stays(socket: web.WebSocketResponse) -> None:
    while (await socket.receive()).type is WSMsgType.BINARY:
        continue


async def prints(socket: web.WebSocketResponse) -> None:
    """Print for ever."""
    while not socket.closed:
        await socket.send_bytes(b"O" + bytes(10_000))
        await asyncio.sleep(0.01)


async def test_a_terminal_without_a_byte_ends() -> None:
    account, user = await relayed(stays, Limits(0.2, PATIENCE_S, lambda: True))
    assert account.reason == "idle" and user.is_over
    assert user.end() == {"reason": "idle", "detail": "", "exit_code": None}


async def test_a_terminal_with_bytes_has_a_longest_time() -> None:
    account, user = await relayed(prints, Limits(PATIENCE_S, 0.5, lambda: True))
    assert account.reason == user.end()["reason"] == "longest_time"
    assert account.received_bytes


async def test_the_end_of_a_user_who_does_not_read_is_noted() -> None:
    user = User()

    async def stopped(socket: web.WebSocketResponse) -> None:
        user.reads.clear()
        await prints(socket)

    account, _ = await relayed(stopped, Limits(0.5, PATIENCE_S, lambda: True), user)
    assert account.reason == "idle" and not user.is_over


async def test_an_end_passes() -> None:
    async def ends(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"Obye")
        end = {"reason": "ended", "detail": "", "exit_code": 9, "more": "x"}
        await socket.send_bytes(END + json.dumps(end).encode())
        await stays(socket)

    account, user = await relayed(ends)
    assert (account.reason, account.exit_code) == ("ended", 9)
    assert user.body.startswith(frame(b"O", b"bye")) and user.end()["exit_code"] == 9


HOSTILE = [
    b"X",
    b"Xno JSON",
    b"X[]",
    b'X{"detail": ""}',
    b'X{"reason": "ended", "detail": "", "exit_code": "boom"}',
    b'X{"reason": "ended", "detail": "", "exit_code": %d}' % 2**80,
    b'X{"reason": "ended", "detail": "", "exit_code": -1}',
    b'X{"reason": "a\\u0000b", "detail": "", "exit_code": null}',
    b'X{"reason": "%s", "detail": "", "exit_code": null}' % (b"a" * 65),
]
"""Ends of a hostile node."""


@pytest.mark.parametrize("end", [*HOSTILE, b"", b"P", b"Zx"])
async def test_the_end_of_a_hostile_node_is_noted(end: bytes) -> None:
    async def lies(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(end)
        await stays(socket)

    account, user = await relayed(lies)
    assert (account.reason, account.exit_code) == ("cut_off", None)
    assert user.end()["reason"] == "cut_off" and user.is_over


@pytest.mark.parametrize("first", [*HOSTILE, b"", b"O"])
async def test_a_first_message_of_a_hostile_node_is_a_refusal(first: bytes) -> None:
    async with executor(lambda socket: socket.send_bytes(first)) as url:
        settings = SETTINGS.model_copy(update={"terminal_executors": url})
        with pytest.raises(ApiError) as refused:
            async with entered(settings, "0" * 32, "token", {}):
                raise AssertionError("it is open")
    assert (refused.value.status, refused.value.reason) == (503, "terminal_cut")


async def test_output_without_bytes_leaves_others_their_turn() -> None:
    """A thousand frames that came at once are not one turn of the loop."""
    turns, most = 0, 0
    user = User()
    received = 0

    async def send(message: Message) -> None:
        nonlocal received, most
        received += 1
        most = max(most, received)
        await User.send(user, message)

    user.send = send  # type: ignore[method-assign]

    async def others() -> None:
        nonlocal received, turns
        while True:
            received, turns = 0, turns + 1
            await asyncio.sleep(0)

    async def floods(socket: web.WebSocketResponse) -> None:
        for _ in range(1000):
            await socket.send_bytes(b"O")
        await socket.send_bytes(END + b'{"reason": "ended", "exit_code": 0}')
        await stays(socket)

    watching = asyncio.ensure_future(others())
    account, _ = await relayed(floods, user=user)
    watching.cancel()
    assert account.reason == "ended" and most < 10

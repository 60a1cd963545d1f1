"""The bytes of a terminal between its user's request and the executor, within limits.

A frame of the request and of its response: kind, one byte; length of the payload, four; payload.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic, monotonic_ns

import aiohttp
from pydantic import ValidationError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from shared.contracts.terminals import (
    ALIVE,
    END,
    MAX_FRAME_BYTES,
    STDERR,
    STDIN,
    STDIN_END,
    STDOUT,
    WINDOW,
    TerminalEnd,
)
from shared.http.rate import NS, Rate, TokenBuckets

HEAD_BYTES = 5
WINDOW_BYTES = 4
FRAMES = Rate(1000, 4000)
"""Frames of the user of a terminal, and parts of its body; what is above it waits."""
AT_ONCE = 500
"""Frames that are looked at before all others have their turn."""
ALIVE_EVERY_S = 10.0
LOOK_EVERY_S = 2.0
LAST_S = 5.0
"""Longest s in which the user takes the last frame."""
MEDIA = "application/vnd.berth.terminal"
USERS = frozenset((STDIN, STDIN_END, WINDOW))


class BadFrame(ValueError):
    """The input has something that is no frame of a user."""


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    return kind + len(payload).to_bytes(4, "big") + payload


async def frames(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[bytes, bytes]]:
    """Yield kinds and payloads, of those that come together as few as possible.

    Raises BadFrame.
    """
    received, paces = bytearray(), TokenBuckets(FRAMES)
    async for chunk in chunks:
        received += chunk
        paces.spend("", monotonic_ns(), 1)
        while whole := _taken(received):
            for one in _merged(whole):
                yield one
            paces.spend("", monotonic_ns(), len(whole))
            while wait_ns := paces.wait_ns("", monotonic_ns()):
                await asyncio.sleep(wait_ns / NS)


def _taken(received: bytearray) -> list[tuple[bytes, bytes]]:
    """Take the first whole frames, but not all of many. Raises BadFrame."""
    whole: list[tuple[bytes, bytes]] = []
    begin = 0
    while len(whole) < AT_ONCE and len(received) >= (at := begin + HEAD_BYTES):
        kind, length = bytes(received[begin : begin + 1]), int.from_bytes(received[begin + 1 : at])
        if length > MAX_FRAME_BYTES:
            raise BadFrame(f"frame: {length} bytes; at most {MAX_FRAME_BYTES} are allowed")
        if kind == WINDOW and length != WINDOW_BYTES:
            raise BadFrame(f"window: {length} bytes; must be {WINDOW_BYTES}")
        if len(received) < at + length:
            break
        begin = at + length
        whole.append((kind, bytes(received[at:begin])))
    del received[:begin]
    return whole


def _merged(whole: list[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Yield input that comes together as one, and of windows the last one."""
    last_window = max((n for n, (kind, _) in enumerate(whole) if kind == WINDOW), default=-1)
    typed = bytearray()
    for n, (kind, payload) in enumerate(whole):
        if kind == WINDOW and n < last_window:
            continue
        if typed and (kind != STDIN or len(typed) + len(payload) > MAX_FRAME_BYTES):
            yield STDIN, bytes(typed)
            typed.clear()
        if kind == STDIN:
            typed += payload
        else:
            yield kind, payload
    if typed:
        yield STDIN, bytes(typed)


@dataclass(slots=True)
class Limits:
    """The conditions at which a terminal ends by itself; `is_allowed` is checked repeatedly."""

    idle_s: float
    longest_s: float
    is_allowed: Callable[[], bool]


@dataclass(slots=True)
class Account:
    """The figures of a terminal that are noted at its end."""

    reason: str = "left"
    exit_code: int | None = None
    sent_bytes: int = 0
    received_bytes: int = 0


class TerminalResponse(Response):
    """Relays until one side ends; `on_end` is called once, however that is."""

    def __init__(
        self,
        executor: aiohttp.ClientWebSocketResponse,
        input_frames: AsyncIterator[tuple[bytes, bytes]],
        limits: Limits,
        on_end: Callable[[Account], Awaitable[None]],
    ) -> None:
        super().__init__(
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", "Connection": "close"},
            media_type=MEDIA,
        )
        del self.headers["content-length"]
        self._executor = executor
        self._input = input_frames
        self._limits = limits
        self._on_end = on_end
        self._account = Account()
        self._moved_s = monotonic()
        self._over = self._is_end_sent = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._relay(send)
        finally:
            await self._on_end(self._account)
        with suppress(TimeoutError, OSError):
            # A user who does not read takes this never.
            async with asyncio.timeout(LAST_S):
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _relay(self, send: Send) -> None:
        """Relay, say how it ended, and read on until the user has taken that.

        A connection that is closed with input unread would take back what was sent last.
        """
        sending = asyncio.ensure_future(self._send_input())
        parts = {sending, asyncio.ensure_future(self._send_output(send))}
        parts.add(asyncio.ensure_future(self._watch()))
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            self._over = True
            others = parts - {sending}
            await _cancelled(others)
            with suppress(TimeoutError):
                # It reads on until the executor closes too, which a full connection delays.
                async with asyncio.timeout(LAST_S):
                    await self._executor.close()
            if not self._is_end_sent:
                failed = any(part.exception() for part in done)
                reasons = (part.result() for part in done if part.exception() is None)
                self._account.reason = "cut_off" if failed else next(reasons, "left")
                await self._send_end(send, self._account.reason)
            await asyncio.wait({sending}, timeout=LAST_S)
        finally:
            await _cancelled(parts)

    async def _send_end(self, send: Send, reason: str) -> None:
        """Send the end to a user who may be gone."""
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(LAST_S):
                await self._send(send, _end_frame(TerminalEnd(reason=reason)))

    async def _send_input(self) -> str:
        """Return why there is no more of it: a user who leaves ends the terminal."""
        try:
            async for kind, payload in self._input:
                if self._over:
                    continue
                if kind not in USERS:
                    return "malformed"
                self._moved_s = monotonic()
                self._account.sent_bytes += len(payload)
                with suppress(ConnectionError):
                    # The output says why.
                    await self._executor.send_bytes(kind + payload)
        except BadFrame:
            return "malformed"
        return "left"

    async def _send_output(self, send: Send) -> str:
        while True:
            try:
                message = await self._executor.receive(timeout=ALIVE_EVERY_S)
            except TimeoutError:
                await self._send(send, frame(ALIVE))
                continue
            if message.type is not aiohttp.WSMsgType.BINARY:
                return "cut_off"
            kind, payload = message.data[:1], message.data[1:]
            if kind == END:
                return await self._end_by(send, payload)
            if kind not in (STDOUT, STDERR):
                return "cut_off"
            await self._send(send, frame(kind, payload))
            # A user who reads at once would leave no other one their turn.
            await asyncio.sleep(0)
            self._moved_s = monotonic()
            self._account.received_bytes += len(payload)

    async def _end_by(self, send: Send, payload: bytes) -> str:
        """Send the end that the node states; one that is malformed is a cut."""
        try:
            end = TerminalEnd.model_validate_json(payload)
        except ValidationError:
            return "cut_off"
        self._account.reason, self._account.exit_code = end.reason, end.exit_code
        self._is_end_sent = True
        await self._send(send, _end_frame(end))
        return end.reason

    async def _send(self, send: Send, body: bytes) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": True})

    async def _watch(self) -> str:
        """Return once a limit is reached."""
        ends_s = monotonic() + self._limits.longest_s
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if not self._limits.is_allowed():
                return "not_permitted_any_more"
            if monotonic() >= ends_s:
                return "longest_time"
            if monotonic() - self._moved_s >= self._limits.idle_s:
                return "idle"


def _end_frame(end: TerminalEnd) -> bytes:
    return frame(END, end.model_dump_json().encode())


async def _cancelled(tasks: Collection[asyncio.Future[str]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

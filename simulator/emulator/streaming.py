"""Writes an answer as server-sent events, as its tokens are made, with the faults of a test."""

from __future__ import annotations

import asyncio
import socket
import struct

from aiohttp import web

from simulator.emulator.answers import AnswerForm, Usage
from simulator.emulator.batch import EngineWork
from simulator.emulator.faults import Fault

SLOW_S = 1.0
MALFORMED = b'data: {"choices": [{"delta": \n\n'
RESET_AT_CLOSE = struct.pack("ii", 1, 0)
"""Linger for 0 s: what is not sent is dropped, and the peer gets a reset."""
HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


class StreamWriter:
    """One streamed answer. A reader that is slow gets several tokens in one write."""

    def __init__(
        self, request: web.Request, work: EngineWork, form: AnswerForm, fault: Fault | None
    ) -> None:
        self._request = request
        self._work = work
        self._form = form
        self._fault = fault
        self._stream = web.StreamResponse(headers=HEADERS)
        self._sent = [0] * len(work.sequences)

    async def write(self, choices: int) -> web.StreamResponse:
        """Write until the last token; `choices` is the number of answers per prompt.

        Status and headers are sent at once, as vLLM sends them, also of a request that waits.
        """
        half = sum(sequence.length for sequence in self._work.sequences) // 2
        await self._stream.prepare(self._request)
        await self._work.progress()
        await self._send(self._form.begin(len(self._sent)))
        while True:
            ended = self._work.ended
            await self._send(self._new_tokens())
            if self._fault == "reset" and self._work.made_tokens >= half:
                reset(self._request)
                return self._stream
            if ended:
                break
            await self._work.progress()
        await self._finish(choices)
        return self._stream

    async def _finish(self, choices: int) -> None:
        if self._fault == "malformed":
            await self._send(MALFORMED)
        if self._fault != "cut":
            wrong = self._fault == "wrong-usage"
            usage = Usage.of(self._work, choices, wrong=wrong)
            await self._send(self._form.end(self._work.sequences, usage))
        await self._stream.write_eof()

    def _new_tokens(self) -> bytes:
        events = []
        for choice, sequence in enumerate(self._work.sequences):
            start, self._sent[choice] = self._sent[choice], sequence.made_tokens
            events.append(self._form.tokens(choice, start, sequence.made_tokens))
        return b"".join(events)

    async def _send(self, data: bytes) -> None:
        if self._fault == "slow":
            await asyncio.sleep(SLOW_S)
        if data:
            await self._stream.write(data)


def reset(request: web.Request) -> None:
    """Reset the connection (TCP RST) without the end of the answer."""
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    transport.abort()

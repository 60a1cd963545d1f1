"""A faulty network on the loopback: a proxy that delays, cuts or half-opens connections, or loses
one direction of them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Literal

Direction = Literal["requests", "answers"]
Mode = Literal[
    "good", "slow", "cut", "half_open", "no_requests", "no_answers", "late_requests", "late_answers"
]
CHUNK = 64 * 1024
DISCARDS: dict[Direction, tuple[Mode, Mode]] = {
    "requests": ("half_open", "no_requests"),
    "answers": ("half_open", "no_answers"),
}
HOLDS: dict[Direction, Mode] = {"requests": "late_requests", "answers": "late_answers"}


class Proxy:
    """A proxy in front of one server; `mode` may change at any time, also for open connections.

    `slow` delays each chunk by `delay_s`; `cut` closes connections and accepts none; `half_open`
    discards data in both directions and keeps sockets open, `no_requests` and `no_answers` in one.
    A connection of which data was discarded is closed when the mode changes. `late_requests` and
    `late_answers` hold the data of one direction back until the mode changes, as a network does
    that transmits again what it has lost.
    """

    def __init__(self, target: int | Path, delay_s: float = 0.05) -> None:
        """Create a proxy; `target` is a loopback port or the path of a socket."""
        self._target = target
        self._delay_s = delay_s
        self._mode: Mode = "good"
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._torn: set[asyncio.StreamWriter] = set()
        """Ends of connections of which data was discarded."""
        self._changed = asyncio.Event()
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self, place: int | Path) -> None:
        if isinstance(place, Path):
            self._server = await asyncio.start_unix_server(self._begin, place)
        else:
            self._server = await asyncio.start_server(self._begin, "127.0.0.1", place)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        self.mode = "cut"
        if self._serving:
            await asyncio.wait(self._serving)

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode
        if mode == "cut":
            self._cut()
        for writer in self._torn:
            writer.transport.abort()
        self._torn.clear()
        held, self._changed = self._changed, asyncio.Event()
        held.set()

    def _cut(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode == "cut":
            writer.transport.abort()
            return
        try:
            target_reader, target_writer = await self._reach()
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, target_writer}
        try:
            await asyncio.gather(
                self._pass(reader, target_writer, "requests"),
                self._pass(target_reader, writer, "answers"),
            )
        finally:
            self._open -= {writer, target_writer}
            self._torn -= {writer, target_writer}
            for end in (writer, target_writer):
                end.close()

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, Path):
            return await asyncio.open_unix_connection(self._target)
        return await asyncio.open_connection("127.0.0.1", self._target)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while piece := await reader.read(CHUNK):
                if self._mode == "slow":
                    await asyncio.sleep(self._delay_s)
                while self._mode == HOLDS[direction]:
                    await self._changed.wait()
                if self._mode in DISCARDS[direction]:
                    self._torn.add(writer)
                else:
                    writer.write(piece)
                    await writer.drain()
            writer.close()

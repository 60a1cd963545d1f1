"""A process of its own for what takes seconds: started when needed, restarted if it dies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence

from services.placement.children.frames import HEAD_BYTES, framed, length

MOST_ANSWER_BYTES = 32 * 1024 * 1024
"""Above each plan and proposal that a record holds; the process itself may have more memory."""

log = logging.getLogger(__name__)


class ChildDied(Exception):
    """The process ended, or was killed, before it answered."""


class Child:
    """The handle of the process; requests are answered one after the other."""

    def __init__(
        self, program: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        self._program = program
        self._environment = environment
        self._process: Process | None = None
        self._turn = asyncio.Lock()
        self.starts = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._is_alive() and self._process else None

    async def start(self) -> None:
        """Start the process, so that the first request need not wait for imports."""
        async with self._turn:
            await self._running()

    async def answer(self, request: bytes, limit_s: float) -> bytes:
        """Return the answer; raises ChildDied, also after `limit_s`, and the next call starts a new
        process.
        """
        async with self._turn:
            try:
                async with asyncio.timeout(limit_s):
                    return await exchange(await self._running(), request)
            except (TimeoutError, OSError, OverflowError, asyncio.IncompleteReadError) as error:
                extra = {"program": self._program[-1], "why": repr(error)}
                log.warning("a process of placement died", extra=extra)
                await self._kill()
                raise ChildDied(repr(error)) from error
            except BaseException:
                # An answer left in the pipe would be taken for the next request's.
                await self._kill()
                raise

    async def close(self) -> None:
        async with self._turn:
            await self._kill()

    def _is_alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def _running(self) -> Process:
        if self._process is None or not self._is_alive():
            self._process = await asyncio.create_subprocess_exec(
                *self._program, stdin=PIPE, stdout=PIPE, env=self._environment
            )
            self.starts += 1
        return self._process

    async def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def exchange(process: Process, request: bytes) -> bytes:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(framed(request))
    await process.stdin.drain()
    size = length(await process.stdout.readexactly(HEAD_BYTES))
    if size > MOST_ANSWER_BYTES:
        raise OSError(f"an answer of {size} bytes, at most {MOST_ANSWER_BYTES} are read")
    return await process.stdout.readexactly(size)

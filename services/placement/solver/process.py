"""One solver process for all lanes of a service: started when needed, restarted if it dies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence

from services.placement.core.solver.instance import Instance
from services.placement.solver.frames import (
    HEAD_BYTES,
    SolverReply,
    SolverRequest,
    length,
    pack,
    reply_of,
)

PROGRAM = (sys.executable, "-m", "services.placement.solver")
GRACE_S = 2.0
"""Beyond the wall limit; a process that takes longer hangs, and is killed."""

log = logging.getLogger(__name__)


class SolverDied(Exception):
    """The process ended, or was killed, before it answered."""


class Solver:
    """The handle of the process; requests are solved one after the other."""

    def __init__(
        self, program: Sequence[str] = PROGRAM, environment: Mapping[str, str] | None = None
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

    async def solve(self, instance: Instance, work: float, wall_s: float) -> SolverReply:
        """Solve an instance; raises SolverDied, and the next call starts a new process."""
        async with self._turn:
            process = await self._running()
            try:
                async with asyncio.timeout(wall_s + GRACE_S):
                    return await exchange(process, SolverRequest(instance, work, wall_s))
            except (TimeoutError, OSError, OverflowError, asyncio.IncompleteReadError) as error:
                log.warning("the solver died", extra={"why": repr(error)})
                await self._kill()
                raise SolverDied(repr(error)) from error
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


async def exchange(process: Process, request: SolverRequest) -> SolverReply:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(pack(request))
    await process.stdin.drain()
    head = await process.stdout.readexactly(HEAD_BYTES)
    return reply_of(await process.stdout.readexactly(length(head)))

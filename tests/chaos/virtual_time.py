"""An event loop whose clock jumps to the next timer: hours in seconds, and the same each time."""

from __future__ import annotations

import asyncio
import random
import secrets
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar
from unittest.mock import patch

T = TypeVar("T")
BEGIN_S = 1_700_000_000
AHEAD_S: ContextVar[Callable[[], float]] = ContextVar("ahead", default=lambda: 0.0)
"""Error of the wall clock of the running process, s."""


class NothingLeft(RuntimeError):
    """Every task waits, and no timer is left."""


class JumpingSelector(selectors.DefaultSelector):
    """Moves the clock instead of waiting."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise NothingLeft
        self.now_s += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """No sockets, no threads: only tasks and timers."""

    def __init__(self) -> None:
        self._jumping = JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s


async def _inline(work: Callable[..., T], *args: Any) -> T:
    return work(*args)


@contextmanager
def _patched(loop: VirtualLoop, seed: int) -> Iterator[None]:
    """Replace all clocks by the loop's, ids by seeded ones, and threads by calls."""

    def wall_s() -> float:
        return loop.time() + AHEAD_S.get()()

    chance = random.Random(seed)
    began_ns = BEGIN_S * 1_000_000_000
    with (
        patch.object(time, "time_ns", lambda: began_ns + int(wall_s() * 1e9)),
        patch.object(time, "time", lambda: BEGIN_S + wall_s()),
        patch.object(time, "monotonic", loop.time),
        patch("services.executor.virtual.lane_reader.monotonic", loop.time),
        patch.object(secrets, "token_hex", lambda n=16: chance.randbytes(n).hex()),
        patch.object(asyncio, "to_thread", _inline),
    ):
        yield


def run(seed: int, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return the result of `main`; the same seed runs the same way."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        with _patched(loop, seed):
            try:
                return loop.run_until_complete(main())
            finally:
                _end(loop)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _end(loop: VirtualLoop) -> None:
    """Cancel the tasks of killed processes, which may hang in their clean-up."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=1.0))

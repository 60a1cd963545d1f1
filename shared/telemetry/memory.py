"""glibc keeps what a process has freed between two things that it has not: by itself it gives back
only the end of its heap. A service under steady load would so seem to grow for hours."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

EVERY_S = 60.0


def trim() -> None:
    """Pages of which nothing is in use go back to the system; some milliseconds of CPU. Nothing is
    done where the C library is another one."""
    if _trim is not None:
        _trim(0)


async def return_free_memory(every_s: float = EVERY_S) -> None:
    """Runs until it is cancelled."""
    while True:
        await asyncio.sleep(every_s)
        trim()


def _found() -> Callable[[int], int] | None:
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):
        return None
    found.argtypes, found.restype = (ctypes.c_size_t,), ctypes.c_int
    return found


_trim = _found()

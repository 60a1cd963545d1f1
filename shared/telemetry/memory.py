"""Returns freed memory to the system: glibc itself releases only the end of its heap.

Without it the resident memory of a service under steady load grows for hours.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

EVERY_S = 60.0


def trim() -> None:
    """Release unused pages, in some milliseconds of CPU; a no-op with another C library."""
    if _trim is not None:
        _trim(0)


async def return_free_memory(every_s: float = EVERY_S) -> None:
    """Trim periodically until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        trim()


def _load_trim() -> Callable[[int], int] | None:
    try:
        trim_function = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):
        return None
    trim_function.argtypes, trim_function.restype = (ctypes.c_size_t,), ctypes.c_int
    return trim_function


_trim = _load_trim()

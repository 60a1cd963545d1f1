"""Clocks of the machine, in milliseconds."""

from __future__ import annotations

import time


def boot_ms() -> int:
    """Return CLOCK_BOOTTIME, which also counts while the machine is suspended."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def wall_ms() -> int:
    """Return the wall clock, which may jump."""
    return time.time_ns() // 1_000_000

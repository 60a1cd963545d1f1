"""Growing pauses between tries that bring nothing."""

from __future__ import annotations

import asyncio
import random

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0


def pause_s(in_vain: int) -> float:
    """Return the pause after so many tries in a row that brought nothing."""
    longest = LONGEST_PAUSE_S / FIRST_PAUSE_S
    return FIRST_PAUSE_S * min(2.0 ** min(in_vain - 1, 30), longest)


def about_s(length_s: float) -> float:
    """Return about that time: executors that lost one API do not come back at one instant."""
    return length_s * random.uniform(0.75, 1.25)


async def pause(in_vain: int) -> None:
    """Wait about as long as is due after so many tries in a row that brought nothing."""
    await asyncio.sleep(about_s(pause_s(in_vain)))

"""Helpers that wait; a test never passes or fails by a timing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

PATIENCE_S = float(os.environ.get("BERTH_PATIENCE_S", "180"))
"""Limit of every wait for what must come, in seconds.

Far above what a machine at twenty times its capacity needs: it only ends a test that hangs. A run
in which a test is expected to hang sets the variable.
"""


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not reached():
            await asyncio.sleep(0.005)

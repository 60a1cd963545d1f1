"""What every service does beside its work."""

from __future__ import annotations

import asyncio

from shared.telemetry.memory import give_back
from shared.telemetry.metrics import Metrics, loop_stall_probe


async def upkeep(metrics: Metrics) -> None:
    """Runs until it is cancelled."""
    async with asyncio.TaskGroup() as group:
        group.create_task(loop_stall_probe(metrics))
        group.create_task(give_back())

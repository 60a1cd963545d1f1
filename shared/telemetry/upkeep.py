"""Background tasks of every service."""

from __future__ import annotations

import asyncio

from shared.telemetry.memory import return_free_memory
from shared.telemetry.metrics import Metrics, probe_loop_stall


async def run_upkeep(metrics: Metrics) -> None:
    """Run the tasks until cancelled."""
    async with asyncio.TaskGroup() as group:
        group.create_task(probe_loop_stall(metrics))
        group.create_task(return_free_memory())

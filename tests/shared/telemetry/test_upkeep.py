"""Background tasks of a service return freed memory and measure stalls of its event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest

from shared.telemetry import memory
from shared.telemetry.metrics import Metrics
from shared.telemetry.upkeep import run_upkeep
from tests.patience import PATIENCE_S

FREED = """
import psutil
from shared.telemetry.memory import trim

resident = lambda: psutil.Process().memory_info().rss
held = [bytes(2_000) for _ in range(50_000)]
held = held[::500]  # What is left keeps the heap from getting shorter by itself.
before = resident()
trim()
print(before - resident())
"""


@pytest.mark.process
def test_what_was_freed_between_what_is_in_use_goes_back_to_the_system() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FREED],
        timeout=PATIENCE_S,
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(done.stdout) > 50 * 2**20


async def test_it_goes_back_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    trims: list[None] = []
    monkeypatch.setattr(memory, "trim", lambda: trims.append(None))
    beside = asyncio.create_task(memory.return_free_memory(every_s=0.001))
    async with asyncio.timeout(PATIENCE_S):
        while len(trims) < 3:
            await asyncio.sleep(0.001)
    beside.cancel()


async def test_a_stall_of_the_loop_is_measured() -> None:
    metrics = Metrics("placement")
    beside = asyncio.create_task(run_upkeep(metrics))
    async with asyncio.timeout(PATIENCE_S):
        while (metrics.registry.get_sample_value("berth_event_loop_stall_seconds_sum") or 0) < 0.1:
            time.sleep(0.2)
            await asyncio.sleep(0.01)
    beside.cancel()
    await asyncio.wait({beside})
    assert beside.cancelled()

"""Two copies of placement on the same lanes: each is paused in turn, and its records are stale."""

from __future__ import annotations

import asyncio
import time

import psutil

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.loaded_stack import LoadedStack
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.chaos.result_file import ResultFile
from benchmarks.parts.command import Json
from benchmarks.parts.stack import LANE
from shared.bus.logs.tail import LedgerTail

READY_LIMIT_S = 60.0
PAUSE_S, LONG_PAUSE_S = 0.5, 8.0
"""A long pause outlasts the session of the consumer group."""
LONG_EVERY = 25


async def zombies(options: ChaosOptions, loaded: LoadedStack, _results: ResultFile) -> Json:
    """Run a second copy of placement and pause each in turn while the other decides."""
    data_dir, before = loaded.bench.stack.data_dir, await count_writers(loaded)
    pid = await faults.pid_of(data_dir, "placement")
    long_pauses = 0
    with faults.second_writer(data_dir, "placement", loaded.bench.stack.partitions) as second:
        ready = data_dir / "rival-placement" / "placement.ready"
        is_ready = await faults.wait_until(ready.exists, READY_LIMIT_S) is not None
        for number in range(options.zombies):
            is_long = number % LONG_EVERY == LONG_EVERY - 1
            long_pauses += is_long
            with faults.paused(pid if number % 2 else second.pid):
                await asyncio.sleep(LONG_PAUSE_S if is_long else PAUSE_S)
            await asyncio.sleep(0.2)
        both_alive = psutil.pid_exists(pid) and second.process.poll() is None
    await loaded.wait_for_decision("placement", time.time(), READY_LIMIT_S)
    after = await count_writers(loaded)
    return {
        "zombies": options.zombies,
        "paused_beyond_the_session": long_pauses,
        "records_ignored": after["ignored"] - before["ignored"],
        "writers_accepted": after["writers"],
        "rival_worked": is_ready,
        "both_lived": both_alive,
    }


async def count_writers(loaded: LoadedStack) -> dict[str, int]:
    """Count placement's records that the reader rule ignores, and the writers of the others."""
    tail = LedgerTail(loaded.bench.log("ignored"), {"placement": [LANE]})
    await tail.start()
    writers: set[str] = set()
    try:
        while not tail.caught_up:
            writers |= {accepted.record.w for accepted in await tail.poll(0.5)}
        return {"ignored": tail.ignored, "writers": len(writers)}
    finally:
        await tail.stop()

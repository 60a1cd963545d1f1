"""Malformed records among the commands, with valid jobs between them."""

from __future__ import annotations

import asyncio
import random
import time

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.loaded_stack import LoadedStack
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.chaos.result_file import ResultFile
from benchmarks.parts.command import Json
from benchmarks.parts.percentiles import summarize
from benchmarks.parts.stack import LANE
from shared.ledger.partition import TP
from shared.projections.database import connect

BATCH = 500
SLOWEST_PER_S = 500
"""The time limit allows for this rate of malformed records."""


async def flood(options: ChaosOptions, loaded: LoadedStack, results: ResultFile) -> Json:
    """Append malformed records at a rate, a valid job after each batch; wait for dead letters."""
    draw, tp = random.Random(options.seed), TP("commands", LANE)
    rows, began = await count_dead_letters(loaded), time.time()
    cpu_s = sum(loaded.bench.cpu_s().values())
    job_ids: list[str] = []
    sent = 0

    def figures(dead_letters: int) -> Json:
        waits_s = [
            loaded.placed[job] - loaded.acked[job] for job in job_ids if job in loaded.placed
        ]
        return {
            "malformed": sent,
            "wanted": options.malformed,
            "dead_letters": dead_letters,
            "good_ones_behind": len(job_ids),
            "good_ones_delayed_s": summarize(waits_s),
        }

    loaded.progress = lambda: f", {sent} malformed"
    while sent < options.malformed:
        batch = min(BATCH, options.malformed - sent)
        await asyncio.gather(*(loaded.append(tp, faults.malformed(draw)) for _ in range(batch)))
        sent += batch
        job_ids.append(loaded.submit(f"behind-{sent}"))
        await asyncio.sleep(max(0.0, began + sent / options.malformed_per_s - time.time()))
    sent_s = time.time() - began
    ends = time.time() + 120.0 + options.malformed / SLOWEST_PER_S
    await faults.wait_until(lambda: loaded.placed.keys() >= set(job_ids), ends - time.time())
    while (
        dead_letters := await count_dead_letters(loaded) - rows
    ) < options.malformed and time.time() < ends:
        results.store_part("flood", figures(dead_letters))
        await asyncio.sleep(1.0)
    loaded.progress = str
    return figures(dead_letters) | {
        "sent_in_s": round(sent_s, 1),
        "all_in_read_models_after_s": round(time.time() - began, 1),
        "cpu_s_of_the_stack": round(sum(loaded.bench.cpu_s().values()) - cpu_s, 1),
    }


async def count_dead_letters(loaded: LoadedStack) -> int:
    """Return the number of dead letters with a reason in the read models."""
    conn = await connect(loaded.bench.stack.postgres)
    try:
        return int(await conn.fetchval("SELECT count(*) FROM dead_letter WHERE reason <> ''"))
    finally:
        await conn.close()

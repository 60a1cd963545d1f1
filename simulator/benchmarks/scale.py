"""Jobs per second with 1, 2 and 4 busy lanes, and with two copies of every service.

Every lane is a pool of its own and is kept busy by a load of its own. On a machine with few cores
the lanes share them: what grows is what a lane leaves idle, and CPU seconds per job say what more
cores would bring.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from infra.running import Broker
from simulator.benchmarks.parts.command import serve
from simulator.benchmarks.parts.load import Load
from simulator.benchmarks.parts.stack import Bench, bench_stack
from simulator.benchmarks.spine import Loaded, used

Say = Callable[[str], None]
Json = dict[str, object]
SHAPES = ((1, 1), (2, 1), (4, 1), (2, 2))
"""Busy lanes, and copies of each service."""
NAME = "scale"


@dataclass(frozen=True, slots=True)
class Options:
    """The defaults are those of the published table."""

    broker: Broker = "kafka"
    seconds: float = 20.0
    warm_s: float = 8.0
    outstanding: int = 300
    mean_ms: float = 20.0
    out: str = ""


async def run(options: Options, say: Say) -> Json:
    """One row per shape; with `out`, the JSON and a table in that folder as well."""
    rows: list[Json] = []
    for lanes, copies in SHAPES:
        say(f"{lanes} lanes, {copies} of each service")
        async with bench_stack(
            options.broker, say, partitions=lanes + 1, pools=lanes, copies=copies
        ) as bench:
            rows.append(await saturated(bench, options, lanes, copies))
    found: Json = {
        "bench": NAME, "cores": os.cpu_count() or 0, "broker": options.broker,
        "outstanding_per_lane": options.outstanding, "seconds": options.seconds, "rows": rows,
    }  # fmt: skip
    if options.out:
        folder = Path(options.out)
        (folder / f"{NAME}.json").write_text(json.dumps(found, indent=1) + "\n")
        (folder / f"{NAME}.md").write_text(table(found, rows))
    return found


async def saturated(bench: Bench, options: Options, lanes: int, copies: int) -> Json:
    """Each lane has so many jobs outstanding that it is never without work."""
    loads = [Load(bench, options.mean_ms / 1000, seed=lane, lane=lane) for lane in range(lanes)]
    async with AsyncExitStack() as stack:
        for load in loads:
            await stack.enter_async_context(Loaded(bench, load))
        share = options.outstanding
        driving = [asyncio.ensure_future(load.keep_outstanding(share)) for load in loads]
        await asyncio.sleep(options.warm_s)
        cpu, begin = bench.cpu_s(), time.perf_counter()
        await asyncio.sleep(options.seconds)
        end, spent = time.perf_counter(), used(cpu, bench.cpu_s())
        for each in driving:
            each.cancel()
    placed = [sum(1 for at, _ in load.placed_s if begin <= at < end) for load in loads]
    jobs = sum(placed)
    return {
        "lanes": lanes,
        "copies": copies,
        "jobs_per_s": round(jobs / (end - begin), 1),
        "slowest_lane_jobs_per_s": round(min(placed) / (end - begin), 1),
        "cpu_s_per_1000_jobs": round(1000 * sum(spent.values()) / max(jobs, 1), 2),
        "cores_busy": round(sum(spent.values()) / (end - begin), 2),
        "broker_cpu_share": round(spent.get("broker", 0.0) / max(sum(spent.values()), 1e-9), 2),
    }


def table(found: Json, rows: list[Json]) -> str:
    """For docs/results."""
    names = list(rows[0])
    head = f"Measured by `berth bench {NAME}` on {found['cores']} cores ({found['broker']}).\n\n"
    lines = [
        "| " + " | ".join(names) + " |",
        "|" + "---|" * len(names),
        *("| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows),
    ]
    return head + "\n".join(lines) + "\n"


def main() -> None:
    serve(run, Options, __doc__ or "")


if __name__ == "__main__":
    main()

"""How late the loops of the services wake their sleepers, over a while of plain load."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping

from benchmarks.parts.stack import Bench
from shared.telemetry.scrape import Scraped, scrape_all

STALLS = "berth_event_loop_stall_seconds"
Counts = dict[float, float]
"""Upper bound of a bucket, s -> waits not longer than it."""


async def stalls(bench: Bench, seconds: float) -> dict[str, object]:
    """Bounds of the buckets, in s, in which p99 and the longest wait of each service lie."""
    before = await counted(bench)
    await asyncio.sleep(seconds)
    after = await counted(bench)
    over = {name: less(counts, before.get(name, {})) for name, counts in after.items()}
    p99 = {name: bound(counts, 0.99) for name, counts in over.items() if counts}
    longest = {name: bound(counts, 1.0) for name, counts in over.items() if counts}
    return {
        "seconds": seconds,
        "services": len(p99),
        "p99_below_s": told(max(p99.values(), default=math.inf)),
        "longest_below_s": told(max(longest.values(), default=math.inf)),
        "by_service_p99_below_s": {name: told(s) for name, s in p99.items()},
        "by_service_longest_below_s": {name: told(s) for name, s in longest.items()},
    }


def told(bound_s: float) -> float | str:
    """JSON knows no infinity."""
    return bound_s if math.isfinite(bound_s) else "no bucket"


async def counted(bench: Bench) -> dict[str, Counts]:
    ports = bench.stack.ports.items()
    at = {name: f"127.0.0.1:{each['metrics']}" for name, each in ports if "metrics" in each}
    return {each.name: counts_of(each) for each in await asyncio.to_thread(scrape_all, at)}


def counts_of(scraped: Scraped) -> Counts:
    return {float(labels["le"]): value for labels, value in scraped.series(f"{STALLS}_bucket")}


def less(after: Counts, before: Counts) -> Counts:
    """What came between; a service that was started anew began at nothing."""
    again = any(after.get(le, 0.0) < count for le, count in before.items())
    return after if again else {le: count - before.get(le, 0.0) for le, count in after.items()}


def bound(counts: Mapping[float, float], share: float) -> float:
    """Of the first bucket with that share of all waits."""
    total = max(counts.values())
    return min(le for le, count in counts.items() if count >= share * total)

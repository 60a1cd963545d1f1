"""Stalls of the services' event loops under plain load, from their metrics."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping

from benchmarks.parts.chaos.loaded_stack import LoadedStack
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.chaos.result_file import ResultFile
from benchmarks.parts.stack import Bench
from shared.telemetry.scrape import Scraped, scrape_all

STALLS = "berth_event_loop_stall_seconds"
Counts = dict[float, float]
"""Upper bound of a bucket, in s -> number of stalls that are not longer."""


async def stall(
    options: ChaosOptions, loaded: LoadedStack, _results: ResultFile
) -> dict[str, object]:
    """Inject no fault: measure the effect of the load alone."""
    return await measure_stalls(loaded.bench, options.slow_s)


async def measure_stalls(bench: Bench, seconds: float) -> dict[str, object]:
    """Return the bounds, in s, of the buckets of p99 and of the longest stall of each service."""
    before = await read_counts(bench)
    await asyncio.sleep(seconds)
    after = await read_counts(bench)
    differences = {
        name: subtract_counts(counts, before.get(name, {})) for name, counts in after.items()
    }
    p99 = {name: bucket_of(counts, 0.99) for name, counts in differences.items() if counts}
    longest = {name: bucket_of(counts, 1.0) for name, counts in differences.items() if counts}
    return {
        "seconds": seconds,
        "services": len(p99),
        "p99_below_s": as_json(max(p99.values(), default=math.inf)),
        "longest_below_s": as_json(max(longest.values(), default=math.inf)),
        "by_service_p99_below_s": {name: as_json(bound_s) for name, bound_s in p99.items()},
        "by_service_longest_below_s": {name: as_json(bound_s) for name, bound_s in longest.items()},
    }


def as_json(bound_s: float) -> float | str:
    """Return the bound, or a text for infinity, which JSON does not have."""
    return bound_s if math.isfinite(bound_s) else "no bucket"


async def read_counts(bench: Bench) -> dict[str, Counts]:
    ports = bench.stack.ports.items()
    targets = {
        name: f"127.0.0.1:{service['metrics']}" for name, service in ports if "metrics" in service
    }
    scrapes = await asyncio.to_thread(scrape_all, targets)
    return {scraped.name: counts_of(scraped) for scraped in scrapes}


def counts_of(scraped: Scraped) -> Counts:
    return {float(labels["le"]): value for labels, value in scraped.series(f"{STALLS}_bucket")}


def subtract_counts(after: Counts, before: Counts) -> Counts:
    """Return the stalls in between; the counts of a service that was restarted began at 0."""
    restarted = any(after.get(le, 0.0) < count for le, count in before.items())
    return after if restarted else {le: count - before.get(le, 0.0) for le, count in after.items()}


def bucket_of(counts: Mapping[float, float], share: float) -> float:
    """Return the bound of the first bucket that includes this share of all stalls."""
    total = max(counts.values())
    return min(le for le, count in counts.items() if count >= share * total)

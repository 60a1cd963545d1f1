"""Jobs per second from SubmitJob to JobPlaced through every service, beside a bare relay.

All of `make demo` runs: admission, priority, placement, virtual executor, publisher, projector,
gateway with the trace ring; spans at 100 %, every ledger and input flushed to disk per record.
"""

from __future__ import annotations

import asyncio
import time
import urllib.request
from dataclasses import dataclass

from benchmarks.parts import relay
from benchmarks.parts.command import Json, serve
from benchmarks.parts.load import JobLoad
from benchmarks.parts.percentiles import percentile
from benchmarks.parts.stack import Bench, bench_stack
from infra.supervisor import control
from infra.supervisor.running import Broker
from infra.supervisor.stack import SERVICES
from shared.bus.logs.tail import LedgerTail
from shared.process.progress import ReportLine
from shared.projections.rebuild import rebuild


@dataclass(frozen=True, slots=True)
class SpineOptions:
    """The defaults are those of the published figure."""

    broker: Broker = "kafka"
    seconds: float = 60.0
    warm_s: float = 15.0
    outstanding: int = 400
    mean_ms: float = 20.0
    slow_per_s: float = 50.0
    slow_s: float = 40.0
    relay_s: float = 10.0


async def run(options: SpineOptions, report_line: ReportLine) -> Json:
    """Return the measured rates and times, with the settings."""
    async with bench_stack(options.broker, report_line) as bench:
        report_line(f"{options.slow_per_s:.0f} jobs/s for {options.slow_s:.0f} s")
        slow = await run_at_rate(bench, options)
        report_line(f"{options.outstanding} jobs outstanding for {options.seconds:.0f} s")
        busy = await saturate(bench, options)
        memory = bench.pss_mib()
        report_line("a bare relay of four hops on the same broker")
        await stop_services(bench)
        relay.make_topics(bench.stack, "bench")
        floor = await relay.measure(bench.stack, "bench", options.relay_s)
        report_line("projecting everything again into Postgres")
        projected = await projected_per_s(bench)
    per_s = float(str(busy["jobs_per_s"]))
    return {
        "bench": "spine",
        **busy,
        **slow,
        "relay_jobs_per_s": round(floor, 1),
        "ratio": round(per_s / floor, 3) if floor else 0.0,
        **projected,
        "rss_mib": memory,
        "settings": settings(options),
    }


def settings(options: SpineOptions) -> Json:
    return {
        "broker": options.broker,
        "flush_messages": 0 if options.broker == "embedded" else 1,
        "spans": "100 %",
        "records_per_job": 1,
        "outstanding": options.outstanding,
        "mean_ms": options.mean_ms,
        "seconds": options.seconds,
        "running": "access admission priority placement failslow throttle executor x2 publisher"
        " projector gateway",
    }


async def saturate(bench: Bench, options: SpineOptions) -> Json:
    """Measure throughput and CPU while so many jobs are outstanding."""
    async with RunningLoad(bench, JobLoad(bench, options.mean_ms / 1000, seed=2)) as load:
        driver = asyncio.ensure_future(load.keep_outstanding(options.outstanding))
        await asyncio.sleep(options.warm_s)
        cpu, begin = bench.cpu_s(), time.perf_counter()
        await asyncio.sleep(options.seconds)
        end, spent = time.perf_counter(), used(cpu, bench.cpu_s())
        driver.cancel()
    placed = sum(1 for at, _ in load.placed_s if begin <= at < end)
    return {
        "jobs_per_s": round(placed / (end - begin), 1),
        "cpu_s_per_1000_jobs": round(1000 * sum(spent.values()) / max(placed, 1), 2),
        "cpu_s_per_1000_jobs_by_process": per_thousand(spent, placed),
    }


async def run_at_rate(bench: Bench, options: SpineOptions) -> Json:
    """Measure latency and CPU at a fixed rate."""
    async with RunningLoad(bench, JobLoad(bench, options.mean_ms / 1000)) as load:
        await load.at_rate(options.slow_per_s, 5.0)
        counted, cpu = len(load.placed_s), bench.cpu_s()
        lag = lag_buckets(bench)
        await load.at_rate(options.slow_per_s, options.slow_s)
        await asyncio.sleep(1.0)
        spent = used(cpu, bench.cpu_s())
        lag_p99_ms = 1000 * quantile_of(lag, lag_buckets(bench), 0.99)
    waits = [waited * 1000 for _, waited in load.placed_s[counted:]]
    return {
        "placed_p50_ms_at_50": round(percentile(waits, 0.50), 1),
        "placed_p99_ms_at_50": round(percentile(waits, 0.99), 1),
        "placed_at_50": len(waits),
        "cpu_s_per_1000_jobs_at_50": round(1000 * sum(spent.values()) / max(len(waits), 1), 2),
        "cpu_s_per_1000_jobs_at_50_by_process": per_thousand(spent, len(waits)),
        "projection_lag_p99_ms_at_50": round(lag_p99_ms, 1),
    }


class RunningLoad:
    """A load whose ledger reader runs until the block ends."""

    def __init__(self, bench: Bench, load: JobLoad) -> None:
        self._load = load
        self._tail = LedgerTail(bench.log("bench-reader"), {"placement": [load.lane]})

    async def __aenter__(self) -> JobLoad:
        await self._tail.start()
        while await self._tail.poll(0.3) or not self._tail.caught_up:
            pass
        await self._load.start()
        self._watching = asyncio.ensure_future(self._load.watch(self._tail))
        return self._load

    async def __aexit__(self, *_: object) -> None:
        self._watching.cancel()
        await asyncio.wait([self._watching])
        await self._load.stop()
        await self._tail.stop()


def used(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before.get(name, 0.0) for name in after}


def per_thousand(spent: dict[str, float], jobs: int) -> dict[str, float]:
    return {name: round(1000 * value / max(jobs, 1), 3) for name, value in sorted(spent.items())}


def lag_buckets(bench: Bench) -> dict[float, float]:
    """Return the cumulative counts of the projector's lag histogram by upper bound, in seconds."""
    port = bench.stack.ports["projector"]["metrics"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    buckets: dict[float, float] = {}
    for line in text.splitlines():
        if line.startswith("berth_projection_lag_seconds_bucket"):
            bound = float(line.split('le="')[1].split('"')[0])
            buckets[bound] = buckets.get(bound, 0.0) + float(line.rsplit(" ", 1)[1])
    return buckets


def quantile_of(before: dict[float, float], after: dict[float, float], share: float) -> float:
    """Interpolate inside the bucket, as PromQL's histogram_quantile does."""
    counts = [(bound, after[bound] - before.get(bound, 0.0)) for bound in sorted(after)]
    total = counts[-1][1] if counts else 0.0
    low, below = 0.0, 0.0
    for bound, count in counts:
        if total and count >= share * total:
            if bound == float("inf"):
                return low
            inside = (share * total - below) / max(count - below, 1e-9)
            return low + (bound - low) * inside
        low, below = bound, count
    return low


async def stop_services(bench: Bench) -> None:
    """Stop all but the projector, so that idle services do not disturb the next measurement."""
    for service in SERVICES:
        if service.name != "projector":
            await asyncio.to_thread(control.stop, bench.stack.data_dir, service.name)


@dataclass(slots=True)
class ProjectionProgress:
    """Number of events, and the time that they took; the first call is at the begin."""

    events: int = 0
    first: float = 0.0
    last: float = 0.0

    def add(self, events: int) -> None:
        self.last = time.perf_counter()
        self.first = self.first or self.last
        self.events += events

    @property
    def per_s(self) -> float:
        return self.events / (self.last - self.first) if self.last > self.first else 0.0


async def projected_per_s(bench: Bench) -> Json:
    """Measure the catch-up speed of the projector's code; the rows are compared at the end.

    The time is from the first read to the last stored batch: without creating tables and comparing
    them.
    """
    stack, progress = bench.stack, ProjectionProgress()
    result = await rebuild(
        stack.postgres, bench.log(), stack.partitions, swap=False, report_events=progress.add
    )
    return {
        "projected_events_per_s": round(progress.per_s, 1),
        "projected_events": result.events,
        "projected_equal": result.different == [],
    }


if __name__ == "__main__":
    serve(run, SpineOptions, __doc__ or "")

"""Jobs per second with 1, 2 and 4 busy lanes, and with two copies of every service.

Every lane is a pool of its own with a load of its own that keeps it busy. On a machine with few
cores the lanes share them: throughput grows by what one lane leaves idle, and CPU seconds per job
show what more cores would bring.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.parts.command import Json, serve
from benchmarks.parts.load import JobLoad
from benchmarks.parts.result import write_result
from benchmarks.parts.stack import Bench, bench_stack
from benchmarks.spine import RunningLoad, used
from infra.supervisor.running import Broker
from shared.process.progress import ReportLine

SHAPES = ((1, 1), (2, 1), (4, 1), (2, 2))
"""Busy lanes, and copies of each service."""
INSTALLATIONS = ((1, 50.0), (10, 50.0), (100, 100.0))
"""Pools and total jobs per second for which the page shows the model."""
NAME = "scale"


@dataclass(frozen=True, slots=True)
class ScaleOptions:
    """The defaults are those of the published table."""

    broker: Broker = "kafka"
    seconds: float = 20.0
    warm_s: float = 8.0
    idle_s: float = 8.0
    outstanding: int = 300
    mean_ms: float = 20.0
    out: str = ""


async def run(options: ScaleOptions, report_line: ReportLine) -> Json:
    """Return one row per shape; with `out`, write the JSON and a page into that folder as well."""
    rows: list[Json] = []
    for lanes, copies in SHAPES:
        report_line(f"{lanes} lanes, {copies} of each service")
        async with bench_stack(
            options.broker, report_line, partitions=lanes + 1, pools=lanes, copies=copies
        ) as bench:
            rows.append(await saturate(bench, options, lanes, copies))
    fitted = fit_model(rows)
    needs = [needs_of(fitted, pools, jobs_per_s) for pools, jobs_per_s in INSTALLATIONS]
    result: Json = {
        "bench": NAME,
        "model": fitted,
        "needs": needs,
        "cores": os.cpu_count() or 0,
        "broker": options.broker,
        "outstanding_per_lane": options.outstanding,
        "seconds": options.seconds,
        "rows": rows,
    }
    if options.out:
        write_result(Path(options.out), NAME, result, render_page(result, rows, needs))
    return result


async def saturate(bench: Bench, options: ScaleOptions, lanes: int, copies: int) -> Json:
    """Measure while each lane has so many jobs outstanding that it is never without work."""
    idle = await idle_cores(bench, options.idle_s)
    memory_mib = sum(bench.pss_mib().values())
    loads = [JobLoad(bench, options.mean_ms / 1000, seed=lane, lane=lane) for lane in range(lanes)]
    async with AsyncExitStack() as stack:
        for load in loads:
            await stack.enter_async_context(RunningLoad(bench, load))
        drivers = [
            asyncio.ensure_future(load.keep_outstanding(options.outstanding)) for load in loads
        ]
        await asyncio.sleep(options.warm_s)
        cpu, begin = bench.cpu_s(), time.perf_counter()
        await asyncio.sleep(options.seconds)
        end, spent = time.perf_counter(), used(cpu, bench.cpu_s())
        for driver in drivers:
            driver.cancel()
    placed = [sum(1 for at, _ in load.placed_s if begin <= at < end) for load in loads]
    jobs = sum(placed)
    return {
        "lanes": lanes,
        "copies": copies,
        "jobs_per_s": round(jobs / (end - begin), 1),
        "slowest_lane_jobs_per_s": round(min(placed) / (end - begin), 1),
        "cpu_s_per_1000_jobs": round(1000 * sum(spent.values()) / max(jobs, 1), 2),
        "cores_busy": round(sum(spent.values()) / (end - begin), 2),
        "idle_cores": round(idle, 3),
        "memory_mib": round(memory_mib),
        "broker_cpu_share": round(spent.get("broker", 0.0) / max(sum(spent.values()), 1e-9), 2),
    }


async def idle_cores(bench: Bench, seconds: float) -> float:
    """Return the cores in use without any load, the nodes' heartbeats included."""
    cpu = bench.cpu_s()
    await asyncio.sleep(seconds)
    return sum(used(cpu, bench.cpu_s()).values()) / seconds


def fit_model(rows: list[Json]) -> Json:
    """Return the costs of lanes and jobs: straight lines through the shapes with one copy.

    Cores needed = `cores_fixed` + `cores_per_lane` x lanes + `cpu_s_per_job` x jobs per second.
    """
    single = [row for row in rows if row["copies"] == 1]
    lanes = np.array([float(str(row["lanes"])) for row in single])
    cores = np.polyfit(lanes, [float(str(row["idle_cores"])) for row in single], 1)
    memory = np.polyfit(lanes, [float(str(row["memory_mib"])) for row in single], 1)
    per_job = min(float(str(row["cpu_s_per_1000_jobs"])) for row in single) / 1000
    costs = {
        "cores_fixed": max(0.0, float(cores[1])),
        "cores_per_lane": max(0.0, float(cores[0])),
        "memory_mib_fixed": float(memory[1]),
        "memory_mib_per_lane": max(0.0, float(memory[0])),
        "cpu_s_per_job": per_job,
    }
    return {name: round(value, 4) for name, value in costs.items()}


def needs_of(fitted: Json, pools: int, jobs_per_s: float) -> Json:
    """Return the cores and memory of all services and the broker, by the fitted model."""
    value = {name: float(str(number)) for name, number in fitted.items()}
    cores = value["cores_fixed"] + value["cores_per_lane"] * pools
    memory = value["memory_mib_fixed"] + value["memory_mib_per_lane"] * pools
    return {
        "pools": pools,
        "jobs_per_s": jobs_per_s,
        "cores": round(cores + value["cpu_s_per_job"] * jobs_per_s, 1),
        "memory_gib": round(memory / 1024, 1),
    }


def render_page(result: Json, rows: list[Json], needs: list[Json]) -> str:
    """Return the page for docs/results."""
    return (
        "\n\n".join(
            (
                "# Lanes and copies",
                f"By `berth bench {NAME}` on {result['cores']} cores ({result['broker']}).",
                table(rows),
                "The model that `docs/operations/capacity.md` explains: "
                + ", ".join(f"{name} {value}" for name, value in fit_model(rows).items())
                + ".",
                table(needs),
            )
        )
        + "\n"
    )


def table(rows: list[Json]) -> str:
    names = list(rows[0])
    lines = [
        "| " + " | ".join(names) + " |",
        "|" + "---|" * len(names),
        *("| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows),
    ]
    return "\n".join(lines)


def main() -> None:
    serve(run, ScaleOptions, __doc__ or "")


if __name__ == "__main__":
    main()

"""Start latency: jobs on simulated nodes, and beside them jobs on one node with a real agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from benchmarks.parts.agents.figures import quantiles
from benchmarks.parts.agents.fleet import AgentFleet
from benchmarks.parts.agents.node_pool import POOL
from benchmarks.parts.agents.observation import Observation
from benchmarks.parts.agents.placements import Placements
from benchmarks.parts.agents.real_agent import GPU_TYPE, state_of
from benchmarks.parts.agents.simulated_agent import SHAPE
from benchmarks.parts.agents.start_stages import StageWatch, describe_stages
from benchmarks.parts.command import Json
from benchmarks.parts.load import JobLoad
from benchmarks.parts.stack import Bench
from berth_agent import file_names
from shared.bus.logs.tail import LedgerTail

LAST_START_S = 30.0
POLL_S = 0.1
NOTE_START = 'echo "$BERTH_JOB_ID $(date +%s%3N)" >> "$0"; sleep 0.3'
"""Program of a real worker: it notes its job and the wall milliseconds of its first action, and
lives until the files of its start were looked at."""


async def measure_starts(
    bench: Bench, fleet: AgentFleet, lane: int, jobs_per_s: float, real_per_s: float, seconds: float
) -> Json:
    """Measure from the time of each JobPlaced.

    `start` ends when the program of a real worker runs, `order` when `go` arrives at a simulated
    agent. In between are an order and a report: the worker is prepared and reports ready. In
    `order` one more order follows, as in gangs of several workers; in `start` come the processes
    of a step, which share the cores with everything else.
    """
    fleet.loop_lags.clear()
    noted = bench.stack.data_dir / "starts"
    simulated = JobLoad(
        bench, 0.0, lane=lane, pool=POOL, command=("true",), gpu_types=(str(SHAPE["gpu_type"]),)
    )
    command = ("sh", "-c", NOTE_START, str(noted))
    real = JobLoad(bench, 0.0, 2, lane, POOL, command, (GPU_TYPE,))
    stages = StageWatch(state_of(bench) / file_names.ALLOCATIONS)
    async with (
        watched_placements(bench, lane) as placements,
        watched(stages.watch()),
        running(simulated),
        running(real),
    ):
        await asyncio.gather(
            simulated.at_rate(jobs_per_s, seconds), real.at_rate(real_per_s, seconds)
        )
        with suppress(TimeoutError):
            await fleet.wait_until(lambda: len(fleet.go_ms) >= simulated.number, LAST_START_S)
        with suppress(TimeoutError):
            await until_noted(noted, real.number)
    ran_ms = read_starts(noted)
    figures = describe_starts(placements, fleet, simulated, real, ran_ms)
    return figures | {"stages": describe_stages(stages.marks, placements.job_ms, ran_ms)}


def describe_starts(
    placements: Placements,
    fleet: AgentFleet,
    simulated: JobLoad,
    real: JobLoad,
    started_ms: dict[str, int],
) -> Json:
    allocations, jobs = placements.allocation_ms, placements.job_ms
    orders = [at - allocations[name] for name, at in fleet.go_ms.items() if name in allocations]
    starts = [float(at - jobs[job]) for job, at in started_ms.items() if job in jobs]
    ready = [float(ms) for job, ms in placements.ready_ms.items() if job in simulated.sent]
    return {
        "submitted": simulated.number,
        "ordered": len(orders),
        "real_submitted": real.number,
        "started": len(starts),
        **quantiles("start", starts),
        **quantiles("order", orders),
        **quantiles("ready", ready),
        **quantiles("client_lag_at_starts", map(took_ms, fleet.loop_lags)),
    }


def took_ms(observation: Observation) -> float:
    return observation.ended_ms - observation.begun_ms


@asynccontextmanager
async def watched_placements(bench: Bench, lane: int) -> AsyncIterator[Placements]:
    """Follow the ledger of placement until the block ends."""
    placements, tail = Placements(), LedgerTail(bench.log("bench-reader"), {"placement": [lane]})
    await tail.start()
    try:
        async with watched(placements.watch(tail)):
            yield placements
    finally:
        await tail.stop()


@asynccontextmanager
async def watched(watch: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run a watch until the block ends."""
    watching = asyncio.ensure_future(watch)
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait([watching])


@asynccontextmanager
async def running(load: JobLoad) -> AsyncIterator[None]:
    await load.start()
    try:
        yield
    finally:
        await load.stop()


async def until_noted(path: Path, jobs: int) -> None:
    """Wait until the programs of so many jobs have run. Raises TimeoutError."""
    async with asyncio.timeout(LAST_START_S):
        while len(read_starts(path)) < jobs:
            await asyncio.sleep(POLL_S)


def read_starts(path: Path) -> dict[str, int]:
    """Return the wall ms at which the program of each job first ran."""
    starts: dict[str, int] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        job_id, at_ms = line.split()
        starts.setdefault(job_id, int(at_ms))
    return starts

"""Figures of one engine: starts one by one, a burst, and kills of its executor."""

from __future__ import annotations

import asyncio
import os
import random
import signal

from benchmarks.parts.agents.figures import quantiles
from benchmarks.parts.command import Json
from benchmarks.parts.engines.gang_load import SUCCEEDED, WORKERS, GangLoad, boot_s, gang_load
from benchmarks.parts.engines.options import EnginesOptions
from benchmarks.parts.engines.sites import NODES, EngineSite, running_site
from benchmarks.parts.stack import AWAITED, started, until_joined
from infra.machine.owned_folders import scratch_folder
from infra.supervisor import supervise
from shared.contracts.topics import LANES
from shared.process.progress import ReportLine

OUTPUT_S = 15.0
"""Limit for the first lines of programs, which reach the log behind the ledger."""
KILLED_GANG_S = 2.0
"""Length of a program in the part with kills."""
LEAST_S, MOST_S = 0.2, 3.0
"""Times between two kills, drawn evenly."""


async def measure(engine: str, options: EnginesOptions, report_line: ReportLine) -> Json:
    """Run a stack with this engine alone, and return its figures."""
    starting = running_site(engine)
    site = await asyncio.to_thread(starting.__enter__)
    try:
        return await _on_stack(site, options, report_line)
    finally:
        await asyncio.to_thread(starting.__exit__, None, None, None)


async def _on_stack(site: EngineSite, options: EnginesOptions, report_line: ReportLine) -> Json:
    with scratch_folder("bench") as folder:
        stack = supervise.StackOptions(
            data_dir=folder,
            partitions=LANES,
            awaited=AWAITED,
            services=site.services,
            env={site.executor.name: site.env},
        )
        async with started(stack, report_line) as bench, site.nodes(bench) as lane:
            await until_joined(bench, len(NODES), lane)
            async with gang_load(bench, site.pool, lane, runs_programs=site.runs_programs) as load:
                return await _parts(site, load, options, report_line)


async def _parts(
    site: EngineSite, load: GangLoad, options: EnginesOptions, report_line: ReportLine
) -> Json:
    report_line(f"{site.engine}: {options.starts} gangs, one after the other")
    one_by_one = await starts(site, load, options.starts)
    report_line(f"{site.engine}: {options.gangs} gangs at once")
    at_once = await burst(site, load, options.gangs)
    report_line(f"{site.engine}: {options.kills} kills of the executor")
    killed = await kills(site, load, options)
    lost = [job for job in load.sent_s if load.ends.get(job) != SUCCEEDED]
    doubles: Json = {"double_runs": load.runs.doubles() if load.runs_programs else None}
    if not load.runs_programs:
        doubles["double_runs_absent"] = "virtual workers run no program"
    return {**one_by_one, **at_once, **killed, **doubles, "lost_jobs": len(lost)}


async def starts(site: EngineSite, load: GangLoad, gangs: int) -> Json:
    """Measure from the submit until the program of the last worker runs.

    Virtual workers run no program: until the event that lets them begin.
    """
    taken_ms: list[float] = []
    for number in range(gangs):
        job_id = await load.submit(f"start-{number}", 0.0)
        if not await load.until_ended([job_id], site.end_s):
            continue
        running_s = await _running_s(load, job_id)
        if running_s is not None:
            taken_ms.append(1000 * (running_s - load.sent_s[job_id]))
    return {"measured_starts": len(taken_ms), **quantiles("submit_to_running", taken_ms)}


async def _running_s(load: GangLoad, job_id: str) -> float | None:
    if not load.runs_programs:
        return load.started_s.get(job_id)
    limit_s = boot_s() + OUTPUT_S
    while (running_s := load.runs.running_s(job_id, WORKERS)) is None and boot_s() < limit_s:
        await asyncio.sleep(0.01)
    return running_s


async def burst(site: EngineSite, load: GangLoad, gangs: int) -> Json:
    """Submit gangs at once whose programs end at once; six of them have room at a time."""
    jobs = await asyncio.gather(*(load.submit(f"burst-{n}", 0.0) for n in range(gangs)))
    await load.until_ended(jobs, site.end_s)
    ended = [load.ended_s[job] for job in jobs if job in load.ended_s]
    if not ended:
        return {"gangs_per_s": 0.0}
    took_s = max(ended) - min(load.sent_s[job] for job in jobs)
    return {"gangs_per_s": round(len(ended) / took_s, 2)}


async def kills(site: EngineSite, load: GangLoad, options: EnginesOptions) -> Json:
    """Kill the executor with SIGKILL at random points while gangs wait, start, run and end.

    Its supervisor starts it again. A gang that was there at a kill is recovered if it succeeds.
    """
    draw = random.Random(options.seed)
    working = asyncio.ensure_future(_keep_submitting(load))
    there: set[str] = set()
    try:
        for _ in range(options.kills):
            await asyncio.sleep(draw.uniform(LEAST_S, MOST_S))
            await _kill_executor(site, load)
            there |= load.sent_s.keys() - load.ends.keys()
        await asyncio.sleep(MOST_S)
    finally:
        working.cancel()
        await asyncio.wait([working])
    await load.until_ended(load.sent_s.keys(), site.end_s)
    # The output of the last gangs reaches the log behind their ends.
    await asyncio.sleep(1.0)
    recovered = [job for job in there if load.ends.get(job) == SUCCEEDED]
    return {
        "kills": options.kills,
        "gangs_at_kills": len(there),
        "recovered_after_kill": len(recovered),
        "placed_again_after_kill": len(load.requeued & there),
    }


async def _keep_submitting(load: GangLoad) -> None:
    """Keep twice as many gangs there as have room, until cancelled."""
    number = 0
    while True:
        while len(load.sent_s) - len(load.ends) < 12:
            await asyncio.shield(load.submit(f"kill-{number}", KILLED_GANG_S))
            number += 1
        await asyncio.sleep(0.05)


async def _kill_executor(site: EngineSite, load: GangLoad) -> None:
    folder = load.bench.stack.data_dir
    while not (pid := await asyncio.to_thread(supervise.pid_of, folder, site.executor.name)):
        await asyncio.sleep(0.05)
    os.kill(pid, signal.SIGKILL)

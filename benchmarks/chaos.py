"""Inject faults into a running stack under load, then check everything with `verify`."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from benchmarks.parts.chaos import (
    burst,
    faults,
    flood,
    outages,
    process_kills,
    soak,
    stale_writer,
    stalls,
)
from benchmarks.parts.chaos.full_disk import SERVERS, disk_full
from benchmarks.parts.chaos.loaded_stack import LoadedStack, loaded_stack
from benchmarks.parts.chaos.lost_tail import lost_tail
from benchmarks.parts.chaos.nodes.cuts import cuts
from benchmarks.parts.chaos.nodes.outage import outage
from benchmarks.parts.chaos.nodes.run import nodes
from benchmarks.parts.chaos.nodes.upgrade import upgrade
from benchmarks.parts.chaos.options import ChaosOptions, command_of, settings_of
from benchmarks.parts.chaos.result_file import ResultFile, read_checks
from benchmarks.parts.chaos.verdict import check_installation
from benchmarks.parts.command import Json, serve
from benchmarks.parts.stack import bench_stack
from shared.process.progress import ReportLine

Part = Callable[[ChaosOptions, LoadedStack, ResultFile], Awaitable[Json]]

FIRST_JOBS_S = 60.0
PROGRESS_EVERY_S = 30.0

PARTS: dict[str, Part] = {
    "stall": stalls.stall,
    "recovery": process_kills.recovery,
    "kills": process_kills.kills,
    "zombies": stale_writer.zombies,
    "broker": outages.broker,
    "away": outages.away,
    "postgres": outages.postgres,
    "slow": outages.slow,
    "soak": soak.soak,
    "flood": flood.flood,
    "crowd": burst.crowd,
}
"""Parts that share one stack, in their order."""
LOST_TAIL = "lost_tail"
"""Runs on the shared stack after the final check, since it destroys a ledger."""
OwnStack = Callable[[ChaosOptions, ReportLine], Awaitable[Json]]
OWN_STACKS: dict[str, OwnStack] = {
    **{f"disk_{server}": partial(disk_full, server=server) for server in SERVERS},
    "nodes": nodes,
    "cuts": cuts,
    "outage": outage,
    "upgrade": upgrade,
}
"""Parts with a stack of their own."""


async def run(options: ChaosOptions, report_line: ReportLine) -> Json:
    """Return the figures of each part, and the verdict of `verify` on all that was left behind."""
    requested = parts_of(options)
    results = ResultFile(
        Path(options.out) if options.out else None, command_of(options), settings_of(options)
    )
    if options.simulation:
        results.data["simulation"] = json.loads(Path(options.simulation).read_text())
    if options.checks:
        results.data["checks"] = read_checks(Path(options.checks))
    if set(requested) - OWN_STACKS.keys():
        await run_on_one_stack(options, requested, results, report_line)
    for name, part in OWN_STACKS.items():
        if name in requested:
            store(results, name, await part(options, report_line), report_line)
    results.save()
    return results.data


def parts_of(options: ChaosOptions) -> list[str]:
    """Return the names of the requested parts in order. Raises ValueError for an unknown name."""
    available = [*PARTS, LOST_TAIL, *OWN_STACKS]
    requested = options.only.split(",") if options.only else available
    if unknown := set(requested) - {*available, "none"}:
        raise ValueError(
            f"only={','.join(sorted(unknown))}: parts are {', '.join(available)}, none"
        )
    return [name for name in available if name in requested]


async def run_on_one_stack(
    options: ChaosOptions, requested: list[str], results: ResultFile, report_line: ReportLine
) -> None:
    """Run the parts one after the other under one load, then end the load and check."""
    async with (
        bench_stack(options.broker, report_line, pools=options.pools) as bench,
        loaded_stack(bench, options.per_s, report_line, options.pools) as loaded,
        progress_lines(loaded, report_line),
    ):
        await faults.wait_until(lambda: len(loaded.ended) > 5, FIRST_JOBS_S)
        for name in (name for name in requested if name in PARTS):
            report_line(f"{name}: begins with {len(loaded.ended)} jobs ended")
            store(results, name, await PARTS[name](options, loaded, results), report_line)
        loaded.ends_load.set()
        report_line(f"waiting for {loaded.outstanding} jobs to end")
        all_ended = await loaded.all_ended(300.0)
        results.store_verdict(await check_installation(loaded, all_ended))
        if LOST_TAIL in requested:
            store(results, LOST_TAIL, await lost_tail(options, loaded), report_line)


def store(results: ResultFile, name: str, figures: Json, report_line: ReportLine) -> None:
    results.store_part(name, figures)
    report_line(f"{name}: {json.dumps(figures)}")


@asynccontextmanager
async def progress_lines(loaded: LoadedStack, report_line: ReportLine) -> AsyncIterator[None]:
    """Print a line of progress at intervals until the block ends."""
    began = time.monotonic()

    async def print_lines() -> None:
        while True:
            await asyncio.sleep(PROGRESS_EVERY_S)
            report_line(
                f"{time.monotonic() - began:.0f} s: {len(loaded.acked)} jobs acknowledged, "
                f"{len(loaded.ended)} ended, {loaded.outstanding} outstanding{loaded.progress()}, "
                f"load {os.getloadavg()[0]:.1f}"
            )

    task = asyncio.ensure_future(print_lines())
    try:
        yield
    finally:
        task.cancel()


if __name__ == "__main__":
    serve(run, ChaosOptions, __doc__ or "")

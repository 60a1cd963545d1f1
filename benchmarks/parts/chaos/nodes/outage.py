"""The whole control plane is away while jobs run on nodes: none of them may notice."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.nodes.account import Account
from benchmarks.parts.chaos.nodes.run import judge
from benchmarks.parts.chaos.nodes.site import Site, SiteOptions, quick_terms, running_site
from benchmarks.parts.chaos.nodes.ticks import boot_ms
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.command import Json, Say
from infra.supervisor import control

JOBS = 6
DEFAULT_TERMS_FROM_S = 60.0
"""Outages at least so long are those of a pool with the default settings."""
STARTED_S = 180.0
BACK_S = 300.0
UNTIL_ENDED_S = 1e6
"""Run time of jobs that end only with the load, s."""


async def outage(options: ChaosOptions, say: Say) -> Json:
    """Kill all services, the broker and Postgres, and start them again after `outage_s`."""
    site_options = SiteOptions(
        broker=options.broker,
        nodes=options.agents,
        per_s=0.0,
        most_open=JOBS,
        long_s=UNTIL_ENDED_S,
        terms=terms_of(options.outage_s),
        is_uniform=True,
    )
    async with running_site(site_options, say) as site:
        await start_jobs(site, JOBS)
        before = {node.node_id: node.lease().get("incarnation") for node in site.nodes}
        took_s = await away(site, options.outage_s)
        after = {node.node_id: node.lease().get("incarnation") for node in site.nodes}
        figures = await judge(site, Account(least_s=float("inf")))
        return {
            "outage_s": options.outage_s,
            "jobs": JOBS,
            "nodes_fenced": sum(before[name] != after[name] for name in before),
            "back_s": took_s,
            "longest_gap_s": longest_gap_s(Path(site.load.folder)),
            **figures,
        }


def terms_of(outage_s: float) -> dict[str, Any]:
    """Return the settings of the pool: the defaults, unless the outage is a short one.

    The lease of a short one also has to cover the start of the broker on a busy machine.
    """
    return {} if outage_s >= DEFAULT_TERMS_FROM_S else quick_terms(10 * outage_s)


async def start_jobs(site: Site, count: int) -> None:
    """Submit long jobs, and wait until all their workers run."""
    for _ in range(count):
        site.load.submit()
    await faults.wait_until(lambda: running(site) == count, STARTED_S)


def running(site: Site) -> int:
    return sum(attempt.is_started for attempt in site.load.attempts.values())


async def away(site: Site, outage_s: float) -> float | None:
    """Kill everything but the nodes for so long; return s until all nodes are heard again."""
    data_dir = site.data_dir
    processes = await asyncio.to_thread(control.processes, data_dir)
    supervisor = int((data_dir / "supervisord.pid").read_text())
    with faults.paused(supervisor):
        for process in processes:
            # Postgres at once and without a checkpoint, as by a crash that takes its children.
            number = signal.SIGQUIT if process.name == "postgres" else signal.SIGKILL
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)
        await asyncio.sleep(outage_s)
    began, healed_ms = time.monotonic(), boot_ms()
    if await faults.wait_until(lambda: site.are_renewed_since(healed_ms), BACK_S) is None:
        return None
    return round(time.monotonic() - began, 1)


def longest_gap_s(folder: Path) -> float:
    """Return the longest time between two ticks of one worker on one GPU."""
    gaps_ms = [0]
    for path in folder.iterdir():
        times: dict[str, list[int]] = {}
        for line in path.read_text().splitlines():
            at_ms, _, worker = line.partition(" ")
            times.setdefault(worker, []).append(int(at_ms))
        gaps_ms += [b - a for ticks in times.values() for a, b in pairwise(ticks)]
    return round(max(gaps_ms) / 1000, 2)

"""The whole control plane is away while jobs run on nodes: none of them may notice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.parts.agents.fleet import AgentFleet, running_fleet
from benchmarks.parts.agents.observation import wall_ms
from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.nodes.account import OutageAccount
from benchmarks.parts.chaos.nodes.run import judge
from benchmarks.parts.chaos.nodes.site import ChaosSite, SiteOptions, quick_terms, running_site
from benchmarks.parts.chaos.nodes.ticks import boot_ms, read_ticks
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.command import Json
from infra.drills.outage import control_plane_away
from shared.process.progress import ReportLine

JOBS = 6
DEFAULT_TERMS_FROM_S = 60.0
"""Outages at least so long are those of a pool with the default settings."""
STARTED_S = 180.0
BACK_S = 300.0
LEASE_OUTAGES = 25
"""Length of the lease of a short outage, in outages."""
CLIENTS = 2
"""Processes of simulated agents."""
UNTIL_ENDED_S = 1e6
"""Run time of jobs that end only with the load, s."""


async def outage(options: ChaosOptions, report_line: ReportLine) -> Json:
    """Kill all services, the broker and Postgres, and start them again after `outage_s`.

    Beside the nodes whose workers are watched, `sessions` simulated agents come back at once.
    """
    site_options = SiteOptions(
        broker=options.broker,
        nodes=options.agents,
        per_s=0.0,
        most_open=JOBS,
        long_s=UNTIL_ENDED_S,
        terms=terms_of(options.outage_s, options.sessions),
        is_uniform=True,
    )
    async with (
        running_site(site_options, report_line) as site,
        simulated_agents(site, options.sessions) as fleet,
    ):
        await start_jobs(site, JOBS)
        before = {node.node_id: node.lease().get("incarnation") for node in site.nodes}
        with control_plane_away(site.data_dir):
            await asyncio.sleep(options.outage_s)
        healed_ms = wall_ms()
        took_s = await nodes_back(site)
        sessions_back = await count_back(fleet, healed_ms)
        after = {node.node_id: node.lease().get("incarnation") for node in site.nodes}
        figures = await judge(site, OutageAccount(least_s=float("inf")))
        return {
            "outage_s": options.outage_s,
            "jobs": JOBS,
            "nodes_fenced": sum(before[name] != after[name] for name in before),
            "back_s": took_s,
            "sessions": options.sessions,
            "sessions_back": sessions_back,
            "sessions_fenced": count_fenced(fleet),
            "longest_gap_s": longest_gap_s(Path(site.load.folder)),
            **figures,
        }


def terms_of(outage_s: float, sessions: int = 0) -> dict[str, Any]:
    """Return the settings of the pool: the defaults, unless the outage is a short one.

    The lease of a short one also has to cover the start of the broker on a busy machine. Many
    sessions have the heartbeats of the default settings.
    """
    if outage_s >= DEFAULT_TERMS_FROM_S:
        return {}
    stop_after_s = LEASE_OUTAGES * outage_s
    return {"stop_after_s": stop_after_s} if sessions else quick_terms(stop_after_s)


@asynccontextmanager
async def simulated_agents(site: ChaosSite, count: int) -> AsyncIterator[AgentFleet]:
    """Join so many agents without workers, and keep their sessions until the block ends."""
    gateway = site.load.bench.stack.gateway
    async with running_fleet(gateway, site.token, count, CLIENTS, run_s=0.0) as fleet:
        await fleet.all_connected(0.0, STARTED_S)
        yield fleet


async def count_back(fleet: AgentFleet, since_ms: float) -> int:
    """Wait until all simulated agents are heard again; return how many are."""
    with suppress(TimeoutError):
        await fleet.wait_until(lambda: fleet.connected_since(since_ms) == fleet.agents, BACK_S)
    return fleet.connected_since(since_ms)


def count_fenced(fleet: AgentFleet) -> int:
    """Return how often a simulated agent was to begin a new incarnation."""
    return sum(count for fault, count in fleet.faults.items() if fault.endswith("fence"))


async def start_jobs(site: ChaosSite, count: int) -> None:
    """Submit long jobs, and wait until all their workers run."""
    for _ in range(count):
        site.load.submit()
    await faults.wait_until(lambda: running(site) == count, STARTED_S)


def running(site: ChaosSite) -> int:
    return sum(attempt.is_started for attempt in site.load.attempts.values())


async def nodes_back(site: ChaosSite) -> float | None:
    """Return s until all nodes are heard again, None if they are not."""
    began, healed_ms = time.monotonic(), boot_ms()
    if await faults.wait_until(lambda: site.are_renewed_since(healed_ms), BACK_S) is None:
        return None
    return round(time.monotonic() - began, 1)


def longest_gap_s(folder: Path) -> float:
    """Return the longest time between two ticks of one worker on one GPU."""
    times: dict[tuple[str, int, str, int, int], list[int]] = {}
    for tick in read_ticks(folder):
        times.setdefault(tick.worker, []).append(tick.boot_ms)
    gaps_ms = [b - a for ticks in times.values() for a, b in pairwise(ticks)]
    return round(max(gaps_ms, default=0) / 1000, 2)

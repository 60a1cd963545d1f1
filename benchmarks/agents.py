"""CPU and memory per agent, reconnection and start latency with many simulated agents.

One stack serves them all; they enrol by a join token, and their sessions are real. Then
one real agent joins, and jobs start on its node and on the simulated ones. The executor is killed
and comes back, and all agents open a new session at once. With the simulated agents gone, the real
one is measured idle and with a step. At last the whole control plane is away in a second stack.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts.agents.figures import judge, per_agent_ms, quantiles, render_page
from benchmarks.parts.agents.fleet import AgentFleet, running_fleet
from benchmarks.parts.agents.node_pool import agents_stack, prepare_pool
from benchmarks.parts.agents.observation import wall_ms
from benchmarks.parts.agents.outage import measure_outage
from benchmarks.parts.agents.real_agent import measure_agent, running_agent
from benchmarks.parts.agents.starts import measure_starts, took_ms
from benchmarks.parts.command import Json, serve
from benchmarks.parts.result import write_result
from benchmarks.parts.stack import Bench, until_joined
from benchmarks.spine import used
from infra.supervisor import supervise, usage
from infra.supervisor.running import Broker
from infra.supervisor.stack import AGENT_EXECUTOR
from shared.process.progress import ReportLine

NAME, OUTAGE = "agents", "outage"
PARTS = (NAME, OUTAGE)
JOIN_S = 600.0
CONNECT_S = 300.0
MEASURED = (AGENT_EXECUTOR, "placement", "broker")
"""Processes that handle heartbeats and orders."""
RUN_S = 0.5


@dataclass(frozen=True, slots=True)
class AgentsOptions:
    """The defaults are those of the published figures."""

    agents: int = 1000
    broker: Broker = "embedded"
    clients: int = 4
    idle_s: float = 10.0
    seconds: float = 60.0
    jobs_per_s: float = 10.0
    real_jobs_per_s: float = 2.0
    """Jobs on the node of the real agent, meanwhile."""
    jobs_s: float = 60.0
    stop_after_s: float = 600.0
    """Lease of the agents in the outage of the whole control plane."""
    outage_share: float = 0.9
    """Share of that lease for which it is away; 0: the outage is not measured."""
    only: str = ""
    """`outage`, or `agents` for the rest: what is not measured stays as in `out`; empty: all."""
    out: str = ""
    """Folder of agents.json and agents.md."""


async def run(options: AgentsOptions, report_line: ReportLine) -> Json:
    """Return the figures and their aims; with `out`, write JSON and a page there as well.

    Raises ValueError for an unknown part.
    """
    if options.only not in ("", *PARTS):
        raise ValueError(f"only={options.only}: must be one of {PARTS}, or empty for all parts")
    figures = earlier_figures(options.out)
    outage = figures.get(OUTAGE)
    if options.only != OUTAGE:
        figures = await measure_all(options, report_line)
    if options.only != NAME:
        outage = await measure_outage(
            options.agents, options.clients, options.stop_after_s, options.outage_share, report_line
        )
    figures[OUTAGE] = outage
    rows = judge(figures)
    result: Json = {"bench": NAME, **figures, "aims": rows}
    if options.out:
        write_result(Path(options.out), NAME, result, render_page(result, rows))
    return result


def earlier_figures(folder: str) -> Json:
    """Return the figures of an earlier run, the settings alone without one."""
    path = Path(folder) / f"{NAME}.json"
    return json.loads(path.read_text()) if folder and path.exists() else settings(AgentsOptions())


async def measure_all(options: AgentsOptions, report_line: ReportLine) -> Json:
    """Measure everything but the outage of the control plane."""
    load_1m = round(os.getloadavg()[0], 1)
    async with agents_stack(options.broker, report_line) as bench:
        token, lane = await prepare_pool(bench)
        idle = await spend(bench, options.idle_s)
        idle_ms = {name: 1000 * idle.get(name, 0.0) / options.idle_s for name in MEASURED}
        report_line(f"{options.agents} agents join")
        async with AsyncExitStack() as agents:
            async with running_fleet(
                bench.stack.gateway, token, options.agents, options.clients, RUN_S
            ) as fleet:
                figures = await measure_fleet(bench, fleet, lane, options, report_line)
                report_line("one real agent joins")
                real = await agents.enter_async_context(running_agent(bench, token))
                await until_joined(bench, options.agents + 1, lane)
                figures |= await measure_events(bench, fleet, lane, options, report_line)
            report_line("the real agent alone")
            agent = await measure_agent(bench, real.pid, lane, options.idle_s)
    idle_cpu = {name: round(value, 1) for name, value in idle_ms.items()}
    machine = {"load_1m": load_1m, "idle_cpu_ms_per_s": idle_cpu}
    return {**settings(options), **figures, "agent": agent, **machine}


def settings(options: AgentsOptions) -> Json:
    return {
        "agents": options.agents,
        "broker": options.broker,
        "clients": options.clients,
        "cores": os.cpu_count() or 0,
        "seconds": options.seconds,
        "jobs_per_s": options.jobs_per_s,
        "real_jobs_per_s": options.real_jobs_per_s,
        "tls": False,
    }


async def measure_fleet(
    bench: Bench, fleet: AgentFleet, lane: int, options: AgentsOptions, report_line: ReportLine
) -> Json:
    """Measure the join, and then heartbeats and polls, of simulated agents alone."""
    begun_ms = wall_ms()
    await until_joined(bench, options.agents, lane, JOIN_S)
    await fleet.all_connected(0.0, JOIN_S)
    figures: Json = {"join_s": round((wall_ms() - begun_ms) / 1000, 1)}
    report_line(f"heartbeats for {options.seconds:.0f} s")
    return figures | await steady(bench, fleet, options)


async def measure_events(
    bench: Bench, fleet: AgentFleet, lane: int, options: AgentsOptions, report_line: ReportLine
) -> Json:
    """Measure starts, beside a real agent, and what reconnecting costs."""
    rates = options.jobs_per_s, options.real_jobs_per_s
    report_line(f"{rates[0]:g} jobs/s, and {rates[1]:g}/s that run, for {options.jobs_s:.0f} s")
    figures = await measure_starts(bench, fleet, lane, *rates, options.jobs_s)
    report_line("the executor is killed")
    figures["reconnect_s"] = await reconnect_after_kill(bench, fleet)
    report_line("all agents open a new session at once")
    figures |= await reconnect_at_once(fleet)
    return {**figures, "faults": dict(fleet.faults.most_common(8))}


async def steady(bench: Bench, fleet: AgentFleet, options: AgentsOptions) -> Json:
    """Measure heartbeats and waiting polls alone."""
    fleet.heartbeats.clear()
    fleet.loop_lags.clear()
    spent = await spend(bench, options.seconds)
    by_process = per_agent_ms(
        {name: spent.get(name, 0.0) for name in MEASURED}, options.agents, options.seconds
    )
    memory = usage.memory(bench.stack.data_dir)
    control = {n: m for n, m in memory.items() if n not in ("broker", "postgres", "supervisor")}
    return {
        "cpu_per_agent_ms_per_s": round(sum(by_process.values()), 4),
        "cpu_per_agent_ms_per_s_by_process": by_process,
        "control_rss_mib": round(sum(process.rss_mib for process in control.values()), 1),
        "control_pss_mib": round(sum(process.pss_mib for process in control.values()), 1),
        "executor_rss_mib": round(memory[AGENT_EXECUTOR].rss_mib, 1),
        "heartbeats": len(fleet.heartbeats),
        **quantiles("acknowledged", map(took_ms, fleet.heartbeats)),
        **quantiles("client_lag", map(took_ms, fleet.loop_lags)),
    }


async def spend(bench: Bench, seconds: float) -> dict[str, float]:
    """Return CPU seconds by process over that time."""
    before = bench.cpu_s()
    await asyncio.sleep(seconds)
    return used(before, bench.cpu_s())


async def reconnect_after_kill(bench: Bench, fleet: AgentFleet) -> float:
    """Kill the executor, which the supervisor starts again; return s until all are back."""
    pid = await asyncio.to_thread(supervise.pid_of, bench.stack.data_dir, AGENT_EXECUTOR)
    since_ms = wall_ms()
    os.kill(pid, signal.SIGKILL)
    return round(await fleet.all_connected(since_ms, CONNECT_S), 2)


async def reconnect_at_once(fleet: AgentFleet) -> Json:
    """Return s until all agents, whose sessions end at the same time, are back."""
    since_ms = wall_ms()
    fleet.reconnect()
    took_s = await fleet.all_connected(since_ms, CONNECT_S)
    return {"reconnect_at_once_s": round(took_s, 2)}


if __name__ == "__main__":
    serve(run, AgentsOptions, __doc__ or "")

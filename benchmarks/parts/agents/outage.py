"""The whole control plane is killed and comes back; all simulated agents return to it at once."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from benchmarks.parts.agents.fleet import AgentFleet, running_fleet
from benchmarks.parts.agents.node_pool import agents_stack, prepare_pool
from benchmarks.parts.agents.observation import wall_ms
from benchmarks.parts.command import Json
from benchmarks.parts.stack import until_joined
from infra.broker import kafka
from infra.drills.outage import control_plane_away
from infra.supervisor.running import Broker
from shared.process.progress import ReportLine

BROKER: Broker = "kafka"
"""One that has its data again after a kill."""
JOIN_S, BACK_S = 600.0, 600.0


async def measure_outage(
    agents: int, clients: int, stop_after_s: float, share: float, report_line: ReportLine
) -> Json:
    """Let everything but the agents be away for a share of their lease, in a stack of its own."""
    if reason := "outage_share is 0" if share <= 0 else kafka.missing():
        return {"skipped": reason}
    async with agents_stack(BROKER, report_line) as bench:
        token, lane = await prepare_pool(bench, stop_after_s=stop_after_s)
        report_line(f"{agents} agents join")
        async with running_fleet(bench.stack.gateway, token, agents, clients, run_s=0.0) as fleet:
            await until_joined(bench, agents, lane, JOIN_S)
            await fleet.all_connected(0.0, JOIN_S)
            fleet.faults.clear()
            report_line(f"the control plane is away for {share * stop_after_s:.0f} s")
            with control_plane_away(bench.stack.data_dir):
                await asyncio.sleep(share * stop_after_s)
                fleet.heartbeats.clear()
            healed_ms = wall_ms()
            with suppress(TimeoutError):
                await fleet.all_connected(healed_ms, BACK_S)
            return {
                "broker": BROKER,
                "agents": agents,
                "stop_after_s": stop_after_s,
                "outage_s": share * stop_after_s,
                **describe_return(fleet, healed_ms, stop_after_s),
                "load_1m": round(os.getloadavg()[0], 1),
            }


def describe_return(fleet: AgentFleet, healed_ms: float, stop_after_s: float) -> Json:
    """Return how many agents are back since then, how soon, and how many lost their lease.

    An agent has lost it if an executor fenced it, or if the whole lease passed between the sending
    of a heartbeat and the acknowledgement of the next.
    """
    back = fleet.connected_since(healed_ms)
    lapsed = sum(ms >= 1000 * stop_after_s for ms in fleet.unrenewed_ms.values())
    fenced = sum(count for fault, count in fleet.faults.items() if fault.endswith("fence"))
    acknowledged = [at for begun, at in fleet.acknowledged_ms.values() if begun > healed_ms]
    first = [h.ended_ms for h in fleet.heartbeats if h.begun_ms > healed_ms]
    is_back = bool(first) and back == fleet.agents
    return {
        "back": back,
        "fenced": lapsed + fenced + fleet.agents - back,
        "back_s": seconds(min(first) - healed_ms) if first else None,
        "reconnect_s": seconds(max(acknowledged) - min(first)) if is_back else None,
        "longest_unrenewed_s": seconds(max(fleet.unrenewed_ms.values(), default=0.0)),
        "faults": dict(fleet.faults.most_common(8)),
    }


def seconds(time_ms: float) -> float:
    return round(time_ms / 1000, 1)

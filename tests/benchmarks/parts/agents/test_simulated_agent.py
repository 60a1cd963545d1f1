"""A simulated agent against the real server of sessions, on the in-memory broker."""

from __future__ import annotations

import asyncio
from pathlib import Path

from benchmarks.parts.agents.fleet import AgentFleet
from benchmarks.parts.agents.observation import Kind, Observation
from benchmarks.parts.agents.simulated_agent import SimulatedAgent
from tests.patience import PATIENCE_S, until
from tests.services.executor.agents.installation import Installation
from tests.services.executor.core.agents.history import ENQUEUED, PLACED, STARTED, joined


def reported(site: Installation) -> list[str]:
    return [report["kind"] for record in site.sent("reports") for report in record["reports"]]


async def test_it_registers_runs_a_worker_and_reconnects(tmp_path: Path) -> None:
    site, fleet = Installation(tmp_path), AgentFleet(1)

    def observe(kind: Kind, name: str, begun_ms: float, ended_ms: float) -> None:
        fleet.note(Observation(kind, name, begun_ms, ended_ms))

    async with site.serving():
        agent = SimulatedAgent("n1", "n1.s3", f"http://127.0.0.1:{site.port}", 0.0, observe)
        running = asyncio.ensure_future(agent.run())
        await fleet.wait_until(lambda: bool(fleet.heartbeats), PATIENCE_S)
        [registration] = site.sent("reports")[0]["reports"]
        site.placement.write(
            [joined("n1", incarnation=registration["incarnation"]), joined("n2"), ENQUEUED]
        )
        site.placement.write([PLACED])
        await until(lambda: reported(site).count("worker_ready") == 2)
        site.placement.write([STARTED])
        await until(lambda: reported(site).count("worker_exited") == 2)
        assert len(fleet.go_ms) == 2
        opened_ms = fleet.session_ms["n1"]
        agent.reconnect()
        await fleet.wait_until(lambda: fleet.connected_since(opened_ms) == 1, PATIENCE_S)
        assert fleet.faults == {"session: dropped on request": 1}
        running.cancel()
        await asyncio.wait([running])
    assert reported(site)[0] == "node_registered" and "worker_stopped" not in reported(site)

"""The state of the agent for `berth-agent status`, in a file that is never waited for."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from berth_agent import VERSION
from berth_agent.linux import files
from berth_agent.linux.clocks import boot_ms
from berth_agent.node.agent import Agent
from berth_agent.node.session import SessionLoop

STALE_S = 15.0


def describe(agent: Agent, sessions: SessionLoop, problem: str) -> dict[str, Any]:
    """Return the state; the first problem that keeps the node from working is named."""
    with agent.lock:
        now_ms = boot_ms()
        lease = agent.life.lease
        session = sessions.session
        left_s = None if lease.deadline_ms is None else (lease.deadline_ms - now_ms) / 1000
        return {
            "version": VERSION,
            "pid": os.getpid(),
            "written_at": time.time(),
            "state": _state(agent, now_ms),
            "problem": problem or sessions.problem,
            "draining": agent.book.drain_reason,
            "executor": session.url if session else "",
            "generation": agent.life.incarnation.generation,
            "incarnation": agent.life.uuid,
            "lease_left_s": left_s if lease.begun else 0.0,
            "reports_waiting": len(agent.outbox.batch()[1]),
            "workers": [
                {
                    "allocation_id": allocation.allocation_id,
                    "job_id": allocation.launch.job_id,
                    "phase": allocation.phase or "preparing",
                    "gpus": list(allocation.launch.gpus),
                }
                for allocation in agent.workers
            ],
        }


def _state(agent: Agent, now_ms: int) -> str:
    lease = agent.life.lease
    if agent.has_left:
        return "left"
    if lease.is_over(now_ms):
        return "clearing"
    return "active" if lease.may_run(now_ms) else "registering"


def write(run: str, status: dict[str, Any]) -> None:
    """Write the state; the run folder is in memory, and may be full all the same."""
    try:
        files.write_atomic(f"{run}/status.json", json.dumps(status).encode())
    except OSError:
        return


def read(run: str) -> dict[str, Any] | None:
    """Return the last state, None without one. Raises OSError, ValueError."""
    document = files.read_json(f"{run}/status.json")
    return document if isinstance(document, dict) else None


def render(status: dict[str, Any], *, running: bool) -> str:
    """Return the state as people read it."""
    lines = [
        f"state       {status['state'] if running else 'not running'}",
        f"executor    {status['executor'] or 'none'}",
        f"generation  {status['generation']}",
    ]
    if status["lease_left_s"] is None:
        lines.append("lease       without end")
    else:
        lines.append(f"lease       {max(0.0, status['lease_left_s']):.0f} s left")
    if status["draining"]:
        lines.append(f"draining    {status['draining']}")
    if status["problem"]:
        lines.append(f"problem     {status['problem']}")
    for worker in status["workers"]:
        gpus = ",".join(map(str, worker["gpus"])) or "none"
        lines.append(f"worker      {worker['allocation_id']} {worker['phase']} GPUs {gpus}")
    return "\n".join(lines)

"""The state of the agent for `berth-agent status`, in a file that is never waited for.

What passes with time is written as points of CLOCK_BOOTTIME, with the boot to which they belong:
the reader says what is left, also after the agent has died.
"""

from __future__ import annotations

import json
import os
from typing import Any

from berth_agent import VERSION, file_names
from berth_agent.linux import files, processes
from berth_agent.linux.clocks import boot_ms, wall_ms
from berth_agent.node.agent import Agent
from berth_agent.node.executor.session import SessionLoop
from berth_agent.node.files.allocation import AllocationFolder

HAS_LEFT = (
    "the node has left its pool, and has no session; `berth-agent leave --cancel` brings it back,"
    " or `berth-agent join --again` where it was revoked"
)


def describe(agent: Agent, sessions: SessionLoop, problem: str) -> dict[str, Any]:
    """Return the state; `problem` is the first one that keeps the node from working."""
    with agent.lock:
        now_ms = boot_ms()
        lease = agent.incarnations.lease
        session = sessions.session
        return {
            "version": VERSION,
            "pid": os.getpid(),
            "boot_id": agent.incarnations.machine.boot_id,
            "written_boot_ms": now_ms,
            "written_ms": wall_ms(),
            "state": _state(agent, now_ms),
            "problem": problem,
            "draining": agent.book.drain_reason,
            "executor": session.url if session else "",
            "generation": agent.incarnations.incarnation.generation,
            "incarnation": agent.incarnations.uuid,
            "lease_begun": lease.begun,
            "lease_over": lease.is_over(now_ms),
            "lease_end_boot_ms": lease.deadline_ms,
            "reports_waiting": len(agent.outbox.batch()[1]),
            "workers": [_worker(allocation) for allocation in agent.workers],
        }


def _worker(allocation: AllocationFolder) -> dict[str, Any]:
    state = allocation.state
    pairs = (("pid", "ticks"), ("init_pid", "init_ticks"))
    return {
        "allocation_id": allocation.allocation_id,
        "job_id": allocation.launch.job_id,
        "phase": allocation.phase or "preparing",
        "gpus": list(allocation.launch.gpus),
        "processes": [[state[pid], state[ticks]] for pid, ticks in pairs if state.get(pid)],
    }


def _state(agent: Agent, now_ms: int) -> str:
    lease = agent.incarnations.lease
    if agent.has_left:
        return "left"
    if lease.is_over(now_ms):
        return "clearing"
    return "active" if lease.may_run(now_ms) else "registering"


def write(run: str, status: dict[str, Any]) -> None:
    """Write the state; the run folder is in memory, and may be full all the same."""
    try:
        files.write_atomic(f"{run}/{file_names.STATUS}", json.dumps(status).encode())
    except OSError:
        return


def read(run: str) -> dict[str, Any] | None:
    """Return the last state, None without one. Raises OSError, ValueError."""
    document = files.read_json(f"{run}/{file_names.STATUS}")
    if not isinstance(document, dict):
        return None
    if "lease_end_boot_ms" not in document:
        raise ValueError(f"{run}/{file_names.STATUS}: of an agent of another version; restart it")
    return document


def as_of_now(
    status: dict[str, Any], *, running: bool, boot_id: str, now_boot_ms: int, now_ms: int
) -> dict[str, Any]:
    """Return the state that was written, with its age and what it means now.

    `boot_id` and the times are the reader's: points of another boot's clock mean nothing to it.
    """
    same_boot = status["boot_id"] == boot_id
    age_ms = now_boot_ms - status["written_boot_ms"] if same_boot else now_ms - status["written_ms"]
    lives = {
        worker["allocation_id"]: same_boot
        and any(processes.is_alive(pid, ticks) for pid, ticks in worker["processes"])
        for worker in status["workers"]
    }
    return {
        **status,
        "running": running,
        "age_s": max(0, age_ms) / 1000,
        "lease": _lease(status, now_boot_ms) if same_boot else "over: the machine was restarted",
        "workers": [{**w, "lives": lives[w["allocation_id"]]} for w in status["workers"]],
    }


def _lease(status: dict[str, Any], now_boot_ms: int) -> str:
    """Return what is left of the lease, never a rest that is over."""
    end_ms = status["lease_end_boot_ms"]
    if not status["lease_begun"]:
        return "not begun"
    if end_ms is not None and now_boot_ms >= end_ms:
        return f"over since {(now_boot_ms - end_ms) / 1000:.0f} s"
    if status["lease_over"]:
        return "over"
    return "without end" if end_ms is None else f"{(end_ms - now_boot_ms) / 1000:.0f} s left"


def render(status: dict[str, Any]) -> str:
    """Return the state `as_of_now` as people read it."""
    running = status["running"]
    lines = [f"state       {status['state'] if running else 'not running'}"]
    if not running:
        lines.append(f"report      {status['age_s']:.0f} s old: {status['state']} at that time")
    lines += [
        f"executor    {status['executor'] or 'none'}",
        f"generation  {status['generation']}",
        f"lease       {status['lease']}",
    ]
    if status["draining"]:
        lines.append(f"draining    {status['draining']}")
    if status["problem"]:
        lines.append(f"problem     {status['problem']}")
    for worker in status["workers"]:
        gpus = ",".join(map(str, worker["gpus"])) or "none"
        text = f"worker      {worker['allocation_id']} {worker['phase']} GPUs {gpus}"
        if not running:
            lives = "still lives" if worker["lives"] else "does not live any more"
            text += f" at that time; its process {lives}"
        lines.append(text)
    return "\n".join(lines)

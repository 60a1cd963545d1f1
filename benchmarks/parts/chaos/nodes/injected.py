"""The faults of one round: each is injected, held, healed, and over once a fact shows it."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import psutil

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.nodes.account import EVERYWHERE
from benchmarks.parts.chaos.nodes.node import RealNode
from benchmarks.parts.chaos.nodes.site import ChaosSite
from infra.drills.proxy import Mode
from infra.supervisor import supervise

CUTS: tuple[Mode, ...] = (
    "cut",
    "half_open",
    "no_requests",
    "no_answers",
    "late_requests",
    "late_answers",
)
AGENT_FAULTS = ("agent_killed", "agent_paused")
STEP_FAULTS = ("step_killed", "step_paused", "worker_killed")
NODE_FAULTS = (*AGENT_FAULTS, *STEP_FAULTS, *CUTS)
SERVICE_FAULTS = (
    "executor-agents killed",
    "executor-agents paused",
    "placement killed",
    "placement paused",
    "broker killed",
    "broker paused",
    "gateway killed",
    "gateway paused",
    "access killed",
)
STEP_WITHIN_S = 60.0

Action = Callable[[], Awaitable[None]]


async def nothing() -> None:
    """Heal nothing: the fault ends by itself."""


@dataclass(slots=True)
class Injected:
    """One fault: how it begins, how it is healed, and what shows that it is over."""

    kind: str
    inject: Action
    is_over: Callable[[int], bool]
    """Called with the boot ms of the healing."""
    heal: Action = nothing
    node: str | None = None
    """The node that it cuts off from the control plane, or EVERYWHERE; None: it cuts off none."""
    target: str = ""
    """The allocation that it ends."""


def cut(node: RealNode, mode: Mode) -> Injected:
    proxy = node.proxy
    assert proxy is not None

    async def set_mode() -> None:
        proxy.mode = mode

    async def reset() -> None:
        proxy.mode = "good"

    return Injected(mode, set_mode, node.is_renewed_since, reset, node.node_id)


def agent_killed(node: RealNode) -> Injected:
    async def start() -> None:
        node.start()

    return Injected("agent_killed", node.end_agent, node.is_renewed_since, start, node.node_id)


def agent_paused(node: RealNode) -> Injected:
    async def pause() -> None:
        node.send_signal(signal.SIGSTOP)

    async def resume() -> None:
        node.send_signal(signal.SIGCONT)

    return Injected("agent_paused", pause, node.is_renewed_since, resume, node.node_id)


async def of_step(kind: str, node: RealNode, draw: random.Random) -> Injected:
    """Return a fault of a step that runs, or of its worker."""
    await faults.wait_until(lambda: bool(node.steps()), STEP_WITHIN_S)
    allocation, pid = draw.choice(sorted(node.steps().items()) or [("", 0)])

    async def kill() -> None:
        signal_each([pid], signal.SIGKILL)

    async def kill_worker() -> None:
        signal_each(children(pid), signal.SIGKILL)

    async def pause() -> None:
        signal_each([pid], signal.SIGSTOP)

    async def resume() -> None:
        signal_each([pid], signal.SIGCONT)

    def is_gone(_: int) -> bool:
        return allocation not in node.held()

    if kind == "step_paused":
        return Injected(kind, pause, lambda _: True, resume)
    action = kill if kind == "step_killed" else kill_worker
    return Injected(kind, action, is_gone, target=allocation)


def of_service(kind: str, site: ChaosSite) -> Injected:
    """Return a fault of a process of the control plane; the supervisor starts it again."""
    name, action = kind.split()
    number = signal.SIGKILL if action == "killed" else signal.SIGSTOP

    async def strike() -> None:
        await faults.send_signal(site.data_dir, name, number)

    async def resume() -> None:
        if number == signal.SIGSTOP:
            await faults.send_signal(site.data_dir, name, signal.SIGCONT)

    def is_over(healed_boot_ms: int) -> bool:
        return is_serving(site, name) and site.are_renewed_since(healed_boot_ms)

    return Injected(kind, strike, is_over, resume, EVERYWHERE)


def is_serving(site: ChaosSite, name: str) -> bool:
    if name == "broker":
        return site.load.broker_is_open()
    return supervise.is_ready(site.load.bench.stack.ports[name]["metrics"])


async def make(kind: str, site: ChaosSite, node: RealNode | None, draw: random.Random) -> Injected:
    """Return a fault by its kind; those of services have no node."""
    if node is None:
        return of_service(kind, site)
    if kind in STEP_FAULTS:
        return await of_step(kind, node, draw)
    if kind in AGENT_FAULTS:
        return agent_killed(node) if kind == "agent_killed" else agent_paused(node)
    return cut(node, next(mode for mode in CUTS if mode == kind))


def signal_each(pids: list[int], number: signal.Signals) -> None:
    """Signal processes; those that have ended meanwhile, or were never there, are passed over."""
    for pid in pids:
        with suppress(ProcessLookupError):
            if pid:
                os.kill(pid, number)


def children(pid: int) -> list[int]:
    """Return the processes below a step, outermost first."""
    with suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []

"""The simulated agents of a benchmark, seen from outside: their processes and observations."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from benchmarks.parts.agents.load_process import LoadOptions
from benchmarks.parts.agents.observation import Observation, decode_line

MODULE = "benchmarks.parts.agents.load_process"
STOP_S = 15.0


@dataclass(slots=True)
class AgentFleet:
    """State of the agents by their observations so far; times are wall milliseconds."""

    agents: int
    session_ms: dict[str, float] = field(default_factory=dict)
    """Begin of the last hello that was answered, by node."""
    acknowledged_ms: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Sending and acknowledgement of the last heartbeat, by node."""
    unrenewed_ms: dict[str, float] = field(default_factory=dict)
    """Longest time from the sending of a heartbeat to the acknowledgement of the next, by node."""
    heartbeats: list[Observation] = field(default_factory=list)
    go_ms: dict[str, float] = field(default_factory=dict)
    """Arrival of `go` by allocation."""
    loop_lags: list[Observation] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _processes: list[asyncio.subprocess.Process] = field(default_factory=list)

    def note(self, observation: Observation) -> None:
        match observation:
            case Observation("session", node, begun_ms, _):
                self.session_ms[node] = begun_ms
            case Observation("heartbeat", node, begun_ms, ended_ms):
                last_ms, _ = self.acknowledged_ms.get(node, (begun_ms, ended_ms))
                unrenewed_ms = max(self.unrenewed_ms.get(node, 0.0), ended_ms - last_ms)
                self.unrenewed_ms[node] = unrenewed_ms
                self.acknowledged_ms[node] = begun_ms, ended_ms
                self.heartbeats.append(observation)
            case Observation("go", allocation_id, _, ended_ms):
                self.go_ms.setdefault(allocation_id, ended_ms)
            case Observation("fault", fault, _, _):
                self.faults[fault] += 1
            case Observation("loop_lag"):
                self.loop_lags.append(observation)
        self._changed.set()

    def connected_since(self, since_ms: float) -> int:
        """Return how many nodes have a session and an acknowledged heartbeat begun after that."""
        return sum(
            opened_ms > since_ms and self.acknowledged_ms.get(node, (0.0, 0.0))[0] > since_ms
            for node, opened_ms in self.session_ms.items()
        )

    async def all_connected(self, since_ms: float, timeout_s: float) -> float:
        """Return the seconds until all nodes have both. Raises TimeoutError."""
        await self.wait_until(lambda: self.connected_since(since_ms) >= self.agents, timeout_s)
        acknowledged = (self.acknowledged_ms[node][1] for node in self.session_ms)
        last_ms = max(acknowledged, default=since_ms)
        return (last_ms - since_ms) / 1000

    async def wait_until(self, holds: Callable[[], bool], timeout_s: float) -> None:
        """Wait until something that the agents report makes it true. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    def reconnect(self) -> None:
        """Let all agents open a new session at once."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(b"reconnect\n")

    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    async def read(self, process: asyncio.subprocess.Process) -> None:
        """Note what a process reports until it ends."""
        self._processes.append(process)
        assert process.stdout is not None
        async for line in process.stdout:
            self.note(decode_line(line))

    async def stop(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes:
            try:
                async with asyncio.timeout(STOP_S):
                    await process.wait()
            except TimeoutError:
                process.kill()


@asynccontextmanager
async def running_fleet(
    gateway: str, token: str, agents: int, clients: int, run_s: float
) -> AsyncIterator[AgentFleet]:
    """Run simulated agents in so many processes until the block ends; a lost process ends it."""
    fleet = AgentFleet(agents)
    nodes = [f"node-{number:05}" for number in range(agents)]
    try:
        async with asyncio.TaskGroup() as group:
            readers = [
                group.create_task(fleet.read(await _start(gateway, token, part, run_s)))
                for part in (tuple(nodes[first::clients]) for first in range(clients))
                if part
            ]
            yield fleet
            for reader in readers:
                reader.cancel()
    finally:
        await fleet.stop()


async def _start(
    gateway: str, token: str, nodes: tuple[str, ...], run_s: float
) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", MODULE, stdin=pipe, stdout=pipe
    )
    assert process.stdin is not None
    options = LoadOptions(gateway, token, nodes, run_s)
    process.stdin.write(msgspec.json.encode(options) + b"\n")
    return process

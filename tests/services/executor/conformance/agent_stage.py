"""The stage of nodes with an agent: three real agents, their steps and workers."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from uuid import uuid4

from berth_agent.file_names import SPEC
from infra.machine.owned_folders import scratch_folder
from infra.machine.process import free_ports
from infra.slurm.cluster import GPUS, NODES
from services.executor.agents.server import AgentServer
from services.executor.settings import ExecutorSettings
from shared.contracts.enrolment import NodeEnrolled
from shared.contracts.keys import hash_secret
from tests.agent.node_bench import NodeBench
from tests.services.executor.conformance.stages import EngineStage

SECRET = "s" * 64
ACCEPT_S = 0.05
FAR_AT = 4_000_000_000_000
TERMS = {"heartbeat_s": 0.5, "reconnect_s": 0.5, "request_timeout_s": 5.0}


class OwnNode(NodeBench):
    """A node whose processes are known from those of a node of this name in another test run."""

    def join(self, *executors: str) -> None:
        self.installation = uuid4().hex[:12]
        super().join(*executors)


class AgentStage(EngineStage):
    """Agents that know two executors; the part of an engine's daemons is that of the agents."""

    BACKEND = "agent"
    REFUSED = "secret_missing"
    LACKS = {
        "late checks": "an agent looks for the program before its worker is ready",
        "ends gangs": "placement has the other workers of a gang stopped",
        "reports lost": "a lost node ends its workers before it joins anew, and reports none",
        "requeue": "an agent starts no worker a second time",
        "drains": "Berth alone drains a node with an agent",
        "shared nodes": "an agent's node is not shared: `unusable_gpus` is its setting for that",
        "own indices": "Berth chooses the GPUs of a worker itself",
        "queue": "an agent has no queue: it starts what Berth placed",
        "other users": "Berth alone ends the workers of an agent",
        "gives up": "a node is given up by Berth alone: see a lost node",
    }

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, backends=("agent",), **TERMS)
        self.expected_nodes = len(NODES)
        self.ports = free_ports(2)
        self.benches: dict[str, OwnNode] = {}
        self._nodes = ExitStack()

    def make(self, settings: ExecutorSettings) -> AgentServer:
        return AgentServer(settings, self.connect, self.metrics)

    def start(self, **more: object) -> None:
        super().start(**{"nodes": None, "port": self.ports[0], **more})

    async def serving(self, **more: object) -> None:
        self.access.write([enrolled(name) for name in NODES])
        self.placement.write([self.pool])
        folder = self._nodes.enter_context(scratch_folder("conformance"))
        executors = [f"http://127.0.0.1:{port}" for port in self.ports]
        for name in NODES:
            (folder / name).mkdir()
            bench = self.benches[name] = OwnNode(folder / name, name, *executors)
            self._nodes.callback(bench.close)
            bench.settings["gpus"] = GPUS
            bench.start()
        await super().serving(**more)

    def second(self) -> AgentStage:
        other = AgentStage(self.folder / "other")
        other.broker, other.ports = self.broker, self.ports[::-1]
        return other

    def refs(self) -> list[str]:
        benches = self.benches.values()
        specs = [path for bench in benches for path in bench.folder("").glob(f"*/{SPEC}")]
        return [path.parent.name for path in specs]

    def runs_of(self, place: str) -> int:
        return self.benches["g1"].output(f"{place}/0").split().count("ran")

    def kill_controller(self) -> None:
        """Kill the agents; the next ones find what the steps have left."""
        for bench in self.benches.values():
            bench.kill()
            bench.start()

    def freeze(self, node: str) -> None:
        self._signal(node, SIGSTOP)

    def thaw(self, node: str) -> None:
        self._signal(node, SIGCONT)

    def _signal(self, node: str, number: int) -> None:
        process = self.benches[node].process
        assert process is not None
        process.send_signal(number)

    def has_living(self, node: str) -> bool:
        return bool(self.benches[node].living())

    async def crash(self) -> None:
        """Let no agent connect while the executor ends: aiohttp would leave the connection open."""
        for node in self.benches:
            self.freeze(node)
        await asyncio.sleep(ACCEPT_S)
        await super().crash()
        for node in self.benches:
            self.thaw(node)

    async def clean(self) -> None:
        await super().clean()
        self._nodes.close()


def enrolled(node: str) -> NodeEnrolled:
    return NodeEnrolled(
        node_id=node,
        pool="demo",
        credential_sha256=hash_secret(SECRET),
        approved=True,
        expires_at=FAR_AT,
        hardware="",
    )

"""A stage for each backend: a ledger written by hand, and an executor of that backend on it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Any

import pytest

from infra.slurm.cluster import GPUS, NODES, SlurmCluster
from services.executor.core.slurm.submission import SlurmOptions
from services.executor.engines.server import EngineServer
from services.executor.engines.slurm.commands import SlurmCommands
from services.executor.engines.slurm.slurm import SlurmEngine
from services.executor.settings import ExecutorSettings
from services.executor.virtual.server import VirtualServer
from shared.contracts.attempts import AllocationReleased, JobStopRequested
from shared.contracts.job_spec import Gang, JobSpec, Simulated
from shared.contracts.placement import Allocation, JobPlaced
from shared.contracts.reports import LogLines, WorkerExited, WorkerReady, WorkerStopped
from tests.services.executor.facts import a_node, enqueued, started
from tests.services.executor.virtual.twin import Twin

GRACE_S = 1.0
pools = count(1)


class Stage(Twin):
    """`LACKS` has what a backend has not, with the reason, by capability."""

    BACKEND = ""
    LACKS: Mapping[str, str] = {}
    GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"
    """Variable by which a program knows its GPUs."""
    ADDRESS = "127.0.0.1"
    """Address of g2, at which a gang meets whose rank 0 is there."""
    REFUSED = "engine_unsupported"
    """Reason of the refusal of a job with a secret that its tenant lacks."""

    def needs(self, *capabilities: str) -> None:
        """Skip the case where the backend lacks one of these."""
        for capability in capabilities:
            if capability in self.LACKS:
                pytest.skip(f"not applicable: {self.LACKS[capability]}")

    def spec(
        self, script: str, *, workers: int = 1, seconds: float = 0.1, code: int = 0, **more: Any
    ) -> JobSpec:
        """Return a job that runs a script; a virtual worker takes `seconds`, ends with `code`."""
        return JobSpec(
            name="case",
            command=("sh", "-c", script),
            gang=Gang(workers=workers),
            simulated=Simulated(duration_s=seconds, exit_code=code),
            grace_s=GRACE_S,
            **more,
        )

    def place(self, job: str, spec: JobSpec, *on: tuple[str, Sequence[int]]) -> str:
        """Place a worker on each node with these GPUs; return the place of the gang."""
        self.write(enqueued(job, spec))
        allocations = tuple(
            Allocation(rank=rank, node_id=node, gpus=tuple(gpus), cpus=1, mem_gib=0.25)
            for rank, (node, gpus) in enumerate(on)
        )
        placed = JobPlaced(
            job_id=job, tenant="ada", attempt=1, allocations=allocations, waited_ms=0, policy="test"
        )
        return self.write(placed)

    async def begin(self, job: str, spec: JobSpec, *on: tuple[str, Sequence[int]]) -> str:
        """Place a gang, and start it once all of its workers are ready."""
        ready = len(self.reports(WorkerReady))
        place = self.place(job, spec, *on)
        reports = await self.wait_for(WorkerReady, ready + len(on))
        port = next(r.master_port for r in reversed(reports) if r.allocation_id.endswith("/0"))
        self.write(started(job).model_copy(update={"master_port": port}))
        return place

    def request_stop(self, job: str) -> None:
        self.write(JobStopRequested(job_id=job, tenant="ada", attempt=1, reason="cancelled"))

    def release(self, job: str, place: str, rank: int, node: str) -> None:
        self.write(
            AllocationReleased(
                job_id=job,
                attempt=1,
                allocation_id=f"{place}/{rank}",
                node_id=node,
                reason="exited",
            )
        )

    async def exits(self, number: int) -> dict[str, WorkerExited]:
        """Wait for ends of workers by themselves; return them by allocation."""
        # A report is sent again after a while, where workers start slowly before the next end.
        await self.until(lambda: len(self._exits()) >= number)
        return self._exits()

    def _exits(self) -> dict[str, WorkerExited]:
        return {report.allocation_id: report for report in self.reports(WorkerExited)}

    async def stops(self, number: int) -> list[WorkerStopped]:
        return await self.wait_for(WorkerStopped, number)

    def printed(self, rank: int = 0) -> list[str]:
        """Return the lines of a rank so far, each once."""
        lines: dict[int, str] = {}
        for message in self.messages("logs", LogLines):
            if message.rank == rank:
                lines |= dict(enumerate(message.lines, message.first_line))
        return [lines[number] for number in sorted(lines)]

    async def clean(self) -> None:
        """End what is left, so that the next case finds free nodes."""
        await self.crash()


class VirtualStage(Stage):
    """Nodes of an inventory, whose workers take time and run no program."""

    BACKEND = "virtual"
    LACKS = {
        "programs": "virtual workers run no program",
        "outlives": "virtual workers end with their executor, which reports them stopped",
        "reports lost": "virtual workers end with their node",
        "engine": "no engine runs beside the executor",
    }

    def __init__(self, folder: Path) -> None:
        nodes = [a_node(name, gpus=GPUS) for name in NODES]
        super().__init__(folder, *nodes, backends=("virtual",))

    def make(self, settings: ExecutorSettings) -> VirtualServer:
        return VirtualServer(settings, self.nodes, self.connect, self.metrics)


class EngineStage(Stage):
    """The nodes of a real engine of the site, and what its operators and users may do."""

    DRAINED = ""
    """Words of the problem of a node that `drain` drained."""
    WAITS = ("", "")
    """Reason of the refusal of a gang that the engine does not start, and a part of its detail."""
    ZOMBIE = ""
    """Reason of the end of a worker whose node the engine had given up."""

    def second(self) -> EngineStage:
        """Return a stage of another executor of the same pool."""
        raise NotImplementedError

    def refs(self) -> list[str]:
        """Return the ids of the engine's jobs of this pool, in any phase."""
        raise NotImplementedError

    def runs_of(self, place: str) -> int:
        """Return how often the program of a gang printed `ran`, by the engine's own output."""
        raise NotImplementedError

    def kill_controller(self) -> None:
        """Kill the control plane of the engine, and start it again on the state that is there."""
        raise NotImplementedError

    def drain(self, node: str) -> None:
        raise NotImplementedError

    def resume(self, node: str) -> None:
        raise NotImplementedError

    async def occupy(self, node: str, gpus: int) -> tuple[str, set[str]]:
        """Start work of others; return the words for it, and the GPUs that its program sees."""
        raise NotImplementedError

    async def hold_back(self) -> None:
        """Have the engine not start the next gang, which is of one worker on g1."""
        raise NotImplementedError

    def freeze(self, node: str) -> None:
        """Stop the engine's daemon of a node, whose workers run on."""
        raise NotImplementedError

    def thaw(self, node: str) -> None:
        raise NotImplementedError

    async def cancel(self, ref: str) -> None:
        """Cancel a job as a user of the engine does, and wait until the engine began to."""
        raise NotImplementedError

    async def give_up(self, node: str) -> None:
        """Have the engine give up a node whose daemon stands still, and the job on it."""
        raise NotImplementedError


class SlurmStage(EngineStage):
    """All nodes of a real Slurm."""

    BACKEND = "slurm"
    DRAINED = "Slurm: DRAIN, fan"
    WAITS = ("engine_waits", "Resources")
    ZOMBIE = "step_lost"

    def __init__(self, folder: Path, cluster: SlurmCluster) -> None:
        self.name = f"pool{next(pools)}"
        super().__init__(folder, pool=self.name, backends=("slurm",), release=1)
        self.expected_nodes = len(NODES)
        self.cluster = cluster
        self.shared = cluster.shared / self.name
        self.options = SlurmOptions("main", "daemon" if os.geteuid() == 0 else "")

    def make(self, settings: ExecutorSettings) -> EngineServer:
        commands = SlurmCommands(None)
        engine = SlurmEngine(
            commands, self.shared, "main", lambda tenant: self.options, os.geteuid(), ("daemon",)
        )
        return EngineServer(settings, self.name, engine, self.connect, self.metrics)

    def start(self, **more: object) -> None:
        super().start(**{"nodes": None, "slurm_poll_s": 0.2, **more})

    async def serving(self, **more: object) -> None:
        self.placement.write([self.pool])
        await super().serving(**more)

    def second(self) -> SlurmStage:
        other = SlurmStage(self.folder / "other", self.cluster)
        other.broker, other.name, other.shared = self.broker, self.name, self.shared
        return other

    def refs(self) -> list[str]:
        lines = self.cluster.run("squeue", "-h", "-o", "%i %k").splitlines()
        jobs = [line.partition(" ") for line in lines]
        return [ref for ref, _, comment in jobs if f":{self.name}:" in comment]

    def runs_of(self, place: str) -> int:
        [folder] = self.shared.glob(f"*+{place.replace('/', '-')}")
        return (folder / "rank-0.out").read_text().split().count("ran")

    def kill_controller(self) -> None:
        self.cluster.signal("slurmctld", SIGKILL)
        self.cluster.start_controller()

    def drain(self, node: str) -> None:
        self.cluster.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=fan")

    def resume(self, node: str) -> None:
        self.cluster.run("scontrol", "update", f"nodename={node}", "state=resume")

    async def occupy(self, node: str, gpus: int) -> tuple[str, set[str]]:
        script = ("--wrap", "sleep 300", "-w", node, f"--gres=gpu:{gpus}", "--mem=100M")
        ref = self.cluster.run("sbatch", "--parsable", "-o", "/dev/null", *script).strip()
        return f"Slurm job {ref} of root", {str(gpu) for gpu in range(gpus)}

    async def hold_back(self) -> None:
        await self.begin("j1", self.spec("echo begun; sleep 300"), ("g1", range(GPUS)))
        await self.crash()
        self.start(slurm_pending_s=1)

    def freeze(self, node: str) -> None:
        self.cluster.signal(node, SIGSTOP)

    def thaw(self, node: str) -> None:
        self.cluster.signal(node, SIGCONT)

    async def cancel(self, ref: str) -> None:
        self.cluster.run("scancel", ref)
        await self.until(
            lambda: self.cluster.run("squeue", "-h", "-j", ref, "-o", "%T").strip() == "COMPLETING"
        )

    async def give_up(self, node: str) -> None:
        self.cluster.run("scontrol", "update", f"nodename={node}", "state=down", "reason=cut")
        await self.until(lambda: self.refs() == [])

    async def clean(self) -> None:
        await super().clean()
        while self.cluster.run("squeue", "-h", "-o", "%i"):
            for ref in self.cluster.run("squeue", "-h", "-o", "%i").split():
                self.cluster.run("scancel", "--signal=KILL", f"{ref}.0")
                self.cluster.run("scancel", ref)
            await asyncio.sleep(0.1)

"""Short builders of the ledger's events, and a lane that reacts to them."""

from __future__ import annotations

from itertools import count

from services.executor.core.virtual import outcomes
from services.executor.core.virtual.effects import (
    Effect,
    Prepared,
    SendReport,
    WorkerOutcome,
    WorkerSpec,
)
from services.executor.core.virtual.inventory import InventoryNode
from services.executor.core.virtual.membership import take_over
from services.executor.core.virtual.react import react
from services.executor.core.virtual.state import ExecutorState
from shared.contracts.attempts import AllocationReleased, JobStarted
from shared.contracts.base import Event, Model
from shared.contracts.job_spec import Gang, JobSpec, Simulated
from shared.contracts.nodes import NodeJoined
from shared.contracts.placement import Allocation, JobEnqueued, JobPlaced
from shared.ledger.decider import Fact

AT = 1_700_000_000_000


def a_node(name: str = "n1", gpus: int = 4, pool: str = "demo") -> InventoryNode:
    return InventoryNode(
        name, pool, "virtual", "a100", gpus, 64, 512, "r1", (("berth.address", "10.0.0.1"),)
    )


def a_lane(*nodes: InventoryNode) -> ExecutorState:
    own = {node.node_id: node for node in nodes or (a_node(),)}
    return ExecutorState(0, own, backends=frozenset({"virtual"}))


def a_spec(duration_s: float | None = 10.0, workers: int = 1) -> JobSpec:
    return JobSpec(
        name="train",
        command=("true",),
        gang=Gang(workers=workers),
        simulated=Simulated(duration_s=duration_s),
    )


def enqueued(job: str = "j1", spec: JobSpec | None = None, index: int | None = None) -> JobEnqueued:
    return JobEnqueued(
        job_id=job, tenant="ada", submitted_at=AT, spec=spec or a_spec(), array_index=index
    )


def placed(job: str = "j1", *on: tuple[str, int], attempt: int = 1, milli: int = 1000) -> JobPlaced:
    """One worker per (node, gpu)."""
    return JobPlaced(
        job_id=job,
        tenant="ada",
        attempt=attempt,
        allocations=tuple(
            Allocation(rank=rank, node_id=node, gpus=(gpu,), gpu_milli=milli)
            for rank, (node, gpu) in enumerate(on or (("n1", 0),))
        ),
        waited_ms=0,
        policy="test",
    )


def started(job: str = "j1", attempt: int = 1) -> JobStarted:
    return JobStarted(job_id=job, tenant="ada", attempt=attempt)


def joined(node: InventoryNode, incarnation: str) -> NodeJoined:
    return NodeJoined(
        node_id=node.node_id,
        incarnation=incarnation,
        executor_id="e1",
        backend=node.backend,
        gpu_type=node.gpu_type,
        gpus=node.gpus,
        cpus=node.cpus,
        mem_gib=node.mem_gib,
        labels=dict(node.labels),
    )


def released(job: str, allocation_id: str) -> AllocationReleased:
    return AllocationReleased(
        job_id=job, attempt=1, allocation_id=allocation_id, node_id="n1", reason="exited"
    )


class Script:
    """A lane and its ledger, in which each fact is a record of its own."""

    def __init__(self, lane: ExecutorState) -> None:
        self.lane = lane
        self._seq = count(1)

    def given(self, *events: Event) -> Script:
        """Fold events of the past; their effects are dropped."""
        for event in events:
            self.when(event)
        return self

    def at_work(self, base: str = "boot") -> Script:
        """Take over the lane and let its nodes join."""
        take_over(self.lane, base)
        for name, incarnation in self.lane.own_incarnations.items():
            self.when(joined(self.lane.nodes[name], incarnation))
        return self

    def when(self, event: Event, at: int = AT) -> list[Effect]:
        return react(self.lane, Fact(event, "placement", 0, next(self._seq), 0, at))

    def on_outcome(self, outcome: WorkerOutcome) -> list[Effect]:
        return outcomes.on_outcome(self.lane, outcome)

    def running(self, job: str, *on: tuple[str, int], spec: JobSpec | None = None) -> list[str]:
        """Run a job, and return its allocation ids."""
        self.when(enqueued(job, spec))
        self.when(placed(job, *on))
        ids = list(self.lane.of_job[job])
        for allocation_id in ids:
            self.on_outcome(Prepared(allocation_id))
        self.when(started(job))
        return ids


def sent_reports(effects: list[Effect]) -> list[Model]:
    return [effect.report for effect in effects if isinstance(effect, SendReport)]


def worker_spec(
    allocation_id: str = "0/1/0/0",
    spec: JobSpec | None = None,
    node: str = "n1",
    job: str = "j1",
    **more: object,
) -> WorkerSpec:
    values: dict[str, object] = {
        "allocation_id": allocation_id,
        "job_id": job,
        "rank": 0,
        "world_size": 1,
        "node_id": node,
        "gpus": (0,),
        "gpu_milli": 1000,
        "gang_nodes": (node,),
        "job_spec": spec or a_spec(),
    }
    return WorkerSpec(**{**values, **more})  # type: ignore[arg-type]

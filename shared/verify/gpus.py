"""No GPU is over capacity at any position, reused before its release, or outside its node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from shared.projections.ledger_events import LedgerEvent, Payload
from shared.verify.row_store import RowStore
from shared.verify.rules import Violation

RELEASED = "released allocation"


@dataclass(slots=True)
class NodeCapacity:
    """The capacity of a node and its use."""

    gpus: int
    cpus: float
    mem_gib: float
    alive: bool = True
    used_milli: dict[int, int] = field(default_factory=dict)
    """GPU index to its thousandths in use."""
    used_cpus: float = 0.0
    used_mem_gib: float = 0.0

    def add(self, allocation: Payload, sign: int) -> None:
        """Add the CPU and memory of an allocation, or subtract them with sign -1."""
        self.used_cpus += sign * allocation.get("cpus", 0.0)
        self.used_mem_gib += sign * allocation.get("mem_gib", 0.0)


@dataclass(slots=True)
class OpenAllocation:
    """An allocation that was not released yet."""

    node_id: str
    job_id: str
    allocation: Payload


@dataclass(slots=True)
class GpuCapacityRule:
    """Replays every allocation of an installation in the order of its ledgers."""

    CARRIED: ClassVar[tuple[str, ...]] = ("nodes", "allocations", "allocations_of")
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    kept: RowStore = field(default_factory=RowStore)
    name: str = "no GPU is over capacity, reused before its release, or outside its node's life"
    nodes: dict[str, NodeCapacity] = field(default_factory=dict)
    allocations: dict[str, OpenAllocation] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    allocations_of: Counter[str] = field(default_factory=Counter)
    """Number of open allocations of each job."""

    def observe(self, event: LedgerEvent) -> None:
        if event.ledger != "placement":
            return
        match event.type:
            case "node.joined.v1":
                self._join(event)
            case "node.lost.v1":
                if node := self.nodes.get(event.data["node_id"]):
                    node.alive = False
            case "job.placed.v1":
                for allocation in event.data["allocations"]:
                    self._allocate(event, allocation)
            case "allocation.released.v1":
                self._release(event)
            case "job.succeeded.v1" | "job.failed.v1" | "job.cancelled.v1" | "job.requeued.v1":
                self._check_no_allocations(event)

    def _join(self, event: LedgerEvent) -> None:
        data, old = event.data, self.nodes.get(event.data["node_id"])
        node = NodeCapacity(data["gpus"], data["cpus"], data["mem_gib"])
        if old is not None:
            node.used_milli, node.used_cpus = old.used_milli, old.used_cpus
            node.used_mem_gib = old.used_mem_gib
        self.nodes[data["node_id"]] = node

    def _allocate(self, event: LedgerEvent, allocation: Payload) -> None:
        allocation_id = f"{event.position}/{allocation['rank']}"
        node_id, job_id = allocation["node_id"], event.data["job_id"]
        node = self.nodes.get(node_id)
        if node is None or not node.alive:
            self._add(event, f"{allocation_id} is on {node_id}, which is not a live node")
            return
        self.allocations[allocation_id] = OpenAllocation(node_id, job_id, allocation)
        self.allocations_of[job_id] += 1
        for gpu in allocation.get("gpus", ()):
            milli = node.used_milli.get(gpu, 0) + allocation.get("gpu_milli", 1000)
            node.used_milli[gpu] = milli
            if gpu >= node.gpus or milli > 1000:
                self._add(event, f"{node_id} GPU {gpu} has {milli} of 1000 milli-GPU in use")
        node.add(allocation, 1)
        if node.used_cpus > node.cpus + 1e-6 or node.used_mem_gib > node.mem_gib + 1e-6:
            self._add(event, f"{node_id} has more CPU or memory in use than its capacity")

    def _release(self, event: LedgerEvent) -> None:
        allocation_id = event.data["allocation_id"]
        released = self.allocations.pop(allocation_id, None)
        if released is None:
            is_again = self.kept.get(RELEASED, allocation_id) is not None
            reason = "again" if is_again else "but never allocated"
            self._add(event, f"{allocation_id} is released {reason}")
            return
        self.kept.put(RELEASED, allocation_id, ())
        self.allocations_of[released.job_id] -= 1
        node = self.nodes[released.node_id]
        for gpu in released.allocation.get("gpus", ()):
            node.used_milli[gpu] -= released.allocation.get("gpu_milli", 1000)
        node.add(released.allocation, -1)

    def _check_no_allocations(self, event: LedgerEvent) -> None:
        job_id = event.data["job_id"]
        if self.allocations_of[job_id] > 0:
            self._add(event, f"{job_id} has {event.type} before all its GPUs are released")
        del self.allocations_of[job_id]

    def _add(self, event: LedgerEvent, detail: str) -> None:
        self.violations.append(Violation(self.name, event.id, detail))

    def finish(self) -> Iterator[Violation]:
        yield from self.violations

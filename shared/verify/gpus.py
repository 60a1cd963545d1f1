"""No GPU over capacity at any position, none reused before its release, none outside its node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.projections.ledger_events import LedgerEvent, Payload
from shared.verify.rules import Violation, where


@dataclass(slots=True)
class Node:
    """A node while it lives: what it offers and who holds what of it."""

    gpus: int
    cpus: float
    mem_gib: float
    alive: bool = True
    used: dict[int, int] = field(default_factory=dict)
    cpus_used: float = 0.0
    mem_used: float = 0.0


@dataclass(slots=True)
class Lease:
    """What an allocation holds until it is released."""

    node_id: str
    job_id: str
    lease: Payload


@dataclass(slots=True)
class GpusHeld:
    """Replays every allocation of one installation in the order of its ledgers."""

    name: str = "no GPU is over capacity, reused before its release, or outside its node's life"
    nodes: dict[str, Node] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    broken: list[Violation] = field(default_factory=list)
    held_by: Counter[str] = field(default_factory=Counter)
    """How many leases each job holds."""

    def see(self, line: LedgerEvent) -> None:
        if line.ledger != "placement":
            return
        match line.type:
            case "node.joined.v1":
                self._join(line)
            case "node.lost.v1":
                if node := self.nodes.get(line.data["node_id"]):
                    node.alive = False
            case "job.placed.v1":
                for lease in line.data["allocations"]:
                    self._take(line, lease)
            case "allocation.released.v1":
                self._give(line)
            case "job.succeeded.v1" | "job.failed.v1" | "job.cancelled.v1" | "job.requeued.v1":
                self._holds_nothing(line)

    def _join(self, line: LedgerEvent) -> None:
        data, old = line.data, self.nodes.get(line.data["node_id"])
        node = Node(data["gpus"], data["cpus"], data["mem_gib"])
        if old is not None:
            node.used, node.cpus_used, node.mem_used = old.used, old.cpus_used, old.mem_used
        self.nodes[data["node_id"]] = node

    def _take(self, line: LedgerEvent, lease: Payload) -> None:
        name = f"{line.position}/{lease['rank']}"
        node = self.nodes.get(lease["node_id"])
        if node is None or not node.alive:
            self._break(line, f"{name} is on {lease['node_id']}, which is not there")
            return
        self.leases[name] = Lease(lease["node_id"], line.data["job_id"], lease)
        self.held_by[line.data["job_id"]] += 1
        for gpu in lease.get("gpus", ()):
            held = node.used.get(gpu, 0) + lease.get("gpu_milli", 1000)
            node.used[gpu] = held
            if gpu >= node.gpus or held > 1000:
                self._break(line, f"{lease['node_id']} GPU {gpu} holds {held} of 1000 milli-GPU")
        self._account(node, lease, 1)
        if node.cpus_used > node.cpus + 1e-6 or node.mem_used > node.mem_gib + 1e-6:
            self._break(line, f"{lease['node_id']} has more CPU or memory taken than it has")

    @staticmethod
    def _account(node: Node, lease: Payload, sign: int) -> None:
        node.cpus_used += sign * lease.get("cpus", 0.0)
        node.mem_used += sign * lease.get("mem_gib", 0.0)

    def _give(self, line: LedgerEvent) -> None:
        name = line.data["allocation_id"]
        held = self.leases.pop(name, None)
        if held is None:
            again = "again" if name in self.released else "but never taken"
            self._break(line, f"{name} is released {again}")
            return
        self.released.add(name)
        self.held_by[held.job_id] -= 1
        node = self.nodes[held.node_id]
        for gpu in held.lease.get("gpus", ()):
            node.used[gpu] -= held.lease.get("gpu_milli", 1000)
        self._account(node, held.lease, -1)

    def _holds_nothing(self, line: LedgerEvent) -> None:
        job = line.data["job_id"]
        if self.held_by[job] > 0:
            self._break(line, f"{job} is {line.type} and still holds GPUs")
        del self.held_by[job]

    def _break(self, line: LedgerEvent, what: str) -> None:
        self.broken.append(Violation(self.name, where(line), what))

    def finish(self) -> Iterator[Violation]:
        yield from self.broken

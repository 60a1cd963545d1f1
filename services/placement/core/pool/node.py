"""A node of the pool: its machine, what is free on it, and what is known of its silence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from services.placement.core.pool.shape import Slot
from shared.contracts.gang_needs import GPU, MANY, NodeKind, Shape, limit_workers, matches
from shared.contracts.node_problems import NO_NEW_WORK, NodeProblem
from shared.contracts.nodes import Backend, NodeJoined

MARK = "/"
"""Between a pid namespace and the mark of the installation that an agent belongs to."""


class Machine(NamedTuple):
    """The machine of a node, as its registration described it."""

    generation: int = 0
    boot_id: str = ""
    pid_namespace: str = ""
    hardware: str = ""

    @classmethod
    def of(cls, event: NodeJoined) -> Machine:
        return cls(event.generation, event.boot_id, event.pid_namespace, event.hardware)

    def is_same(self, other: Machine) -> bool:
        """Return whether both are one machine, of which the older life is certainly over.

        That is the same pid namespace of the same boot (whoever registers there has ended what
        lived before), or the same hardware after a reboot. Empty values prove nothing.
        """
        if self.boot_id and self.boot_id == other.boot_id:
            return bool(self.pid_namespace) and self.pid_namespace in namespaces_of(other)
        is_reboot = bool(self.boot_id) and bool(other.boot_id)
        return is_reboot and bool(self.hardware) and self.hardware == other.hardware


def namespaces_of(machine: Machine) -> tuple[str, str]:
    """Return the pid namespace as it is named, and without the mark of its installation.

    A node of before has no mark in its ledger's name. An agent that has one kills processes
    without a mark as well as its own, so that its registration proves the end of both.
    """
    return machine.pid_namespace, machine.pid_namespace.partition(MARK)[0]


class NotedSilence(NamedTuple):
    """The silence of a node, as far as the ledger knows."""

    silent_ms: int
    offset: int
    """Next offset of `heartbeats` that was not read yet."""


@dataclass(slots=True)
class Node:
    """One node: its capacity, what is free of it, and the jobs that hold the rest."""

    node_id: str
    incarnation: str
    backend: Backend
    kind: NodeKind
    labels: dict[str, str]
    free: list[int]
    whole: int
    cpu_free: int
    mem_free: int
    rack: str = ""
    lost_at: int | None = None
    is_over: bool = False
    """Nothing of this incarnation lives: its silence, or a person, has proved it."""
    machine: Machine = Machine()
    terms: dict[str, float | None] = field(default_factory=dict)
    """Terms that may still be in use, oldest first: id -> `stop_after_s`, None to keep workers."""
    silence: NotedSilence | None = None
    """Set while nothing is heard of it."""
    problems: frozenset[NodeProblem] = frozenset()
    indexed: bool = False
    jobs: dict[str, int] = field(default_factory=dict)
    """Job id -> number of its workers here."""
    slow_gpus: dict[int, float] = field(default_factory=dict)
    """Slowdown of the GPUs that are suspected; see `Board.order_gpus`."""

    @property
    def oldest_terms(self) -> str:
        """Id of the oldest terms that may be in use; the count of silence begins anew with it."""
        return next(iter(self.terms), "")

    @property
    def takes_work(self) -> bool:
        """Return whether no problem keeps new work off it."""
        return not self.problems & NO_NEW_WORK

    @property
    def is_alive(self) -> bool:
        return self.lost_at is None and self.silence is None

    def room(self, shape: Shape) -> int:
        """Return how many workers with whole GPUs (or none) fit now."""
        if shape.selector and not matches(shape, self.labels):
            return 0
        by_gpu = self.whole // shape.gpus if shape.gpus else MANY
        return limit_workers(by_gpu, shape, self.cpu_free, self.mem_free)

    def hosts(self, shape: Shape) -> bool:
        """Return whether one worker fits now, its GPUs aside."""
        return (
            shape.cpu_milli <= self.cpu_free
            and shape.mem_mib <= self.mem_free
            and (not shape.selector or matches(shape, self.labels))
        )

    def offered(self) -> list[int]:
        """Return its wholly free GPUs, the healthiest first, the lowest first of equals."""
        free = [gpu for gpu, left in enumerate(self.free) if left == GPU]
        if self.slow_gpus:
            free.sort(key=lambda gpu: self.slow_gpus.get(gpu, 1.0))
        return free

    def slots(self, shape: Shape, workers: int) -> list[Slot]:
        """Return slots for that many workers, on the healthiest free GPUs, the lowest first."""
        name, n, milli = self.node_id, shape.gpus, shape.milli
        cpu, mem = shape.cpu_milli, shape.mem_mib
        free = self.offered() if n else []
        if workers == 1:
            return [Slot(name, tuple(free[:n]), milli, cpu, mem)]
        return [Slot(name, tuple(free[w * n : w * n + n]), milli, cpu, mem) for w in range(workers)]

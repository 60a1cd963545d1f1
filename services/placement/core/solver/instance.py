"""A contended round as plain data: what the solver is told, and the plan it answers with.

Everything is a whole number or a name, so that the same bytes always mean the same problem.
"""

from __future__ import annotations

from dataclasses import dataclass

from services.placement.core.pool.shape import Slot


@dataclass(frozen=True, slots=True)
class FreeNode:
    """A node of a class; only the indices of its free GPUs tell it from the others."""

    node_id: str
    free: tuple[int, ...]
    """Free thousandths of each GPU."""


@dataclass(frozen=True, slots=True)
class VictimShare:
    """What a running job that may be stopped holds on each node of a class."""

    victim: int
    whole: int
    cpu_milli: int
    mem_mib: int


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes that are the same to every job of the instance."""

    gpus: int
    """Devices of such a node, free or not."""
    whole: int
    """Wholly free ones."""
    partial: tuple[int, ...]
    """Free thousandths of the partly used ones, ascending."""
    cpu_milli: int
    mem_mib: int
    rack: int
    nodes: tuple[FreeNode, ...]
    victim_shares: tuple[VictimShare, ...] = ()


@dataclass(frozen=True, slots=True)
class GangRequest:
    """A gang: all of its least workers or none."""

    job_id: str
    attempt: int
    gpus: int
    milli: int
    cpu_milli: int
    mem_mib: int
    min_workers: int
    max_workers: int
    classes: tuple[int, ...]
    """Where it may run: GPU type, labels and nodes to avoid are looked at already."""
    speeds: tuple[int, ...]
    """Thousandths of full speed on each of `classes`: the GPU type's throughput times health."""
    position: int
    """In the line, 0 first."""
    value: int
    """Of a start with its least workers at full speed."""
    extra: int = 0
    """Of each worker beyond."""
    must_start: bool = False
    """The first of the line that fits: every plan starts it, so nobody starves."""
    victims: tuple[int, ...] = ()
    """Running jobs that it may stop; only a job that does not fit has any."""

    @property
    def is_share(self) -> bool:
        return self.gpus > 0 and self.milli < 1000


@dataclass(frozen=True, slots=True)
class Victim:
    """A running job that some wish may stop."""

    job_id: str
    attempt: int
    price: int
    """Of stopping it: lost work, restart, and the GPUs it loses."""
    move_price: int
    """Of stopping it where it goes on elsewhere: lost work and restart."""
    request: GangRequest
    """What it needs to go on elsewhere; without classes it may not."""


@dataclass(frozen=True, slots=True)
class NextWorker:
    """One worker of the first job in line that fits nowhere now: who should fit next."""

    gpus: int = 0
    cpu_milli: int = 0
    mem_mib: int = 0


@dataclass(frozen=True, slots=True)
class Start:
    """A wish, by its index, and its slots: taken now."""

    request: int
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Reservation:
    """A wish that makes others stop; its workers by node, on what will be free then."""

    request: int
    workers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class VictimMigration:
    """A victim, by its index, that goes on on other GPUs, free now."""

    victim: int
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """What one contended round would do."""

    starts: tuple[Start, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    stops: tuple[int, ...] = ()
    """Victims that stop, moved ones among them."""
    migrations: tuple[VictimMigration, ...] = ()


@dataclass(frozen=True, slots=True)
class Fixed:
    """A job before the window, where greedy puts it; what it takes is no longer in the classes."""

    job_id: str
    attempt: int
    position: int
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Instance:
    """One contended round. Nodes with nothing free and no victim are only counted."""

    classes: tuple[NodeClass, ...]
    requests: tuple[GangRequest, ...]
    victims: tuple[Victim, ...] = ()
    next_worker: NextWorker = NextWorker()
    full_nodes: int = 0
    greedy: RoundPlan = RoundPlan()
    fixed: tuple[Fixed, ...] = ()


@dataclass(frozen=True, slots=True)
class Solution:
    """The better of the solver's plan and greedy's, under `objective.score`."""

    plan: RoundPlan
    status: str
    """`optimal`, `feasible`, `kept_greedy` or `refused`: see `SolverStatus`."""
    objective: int
    greedy: int
    bound: int
    """No plan that the model can express scores more."""
    terms: dict[str, int]
    """Parts of the objective."""
    exact: bool = True
    """Every node was a bin of its own; else some stood in a bundle and served one job each."""

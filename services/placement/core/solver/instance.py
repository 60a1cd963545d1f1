"""A contended round as plain data: the instance that the solver gets, and its solution.

Everything is a whole number or a name, so that the same bytes always mean the same problem.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.placement.core.pool.shape import Slot


@dataclass(frozen=True, slots=True)
class FreeNode:
    """A node of a class; it differs from the others in the indices of its free GPUs only."""

    node_id: str
    free: tuple[int, ...]
    """Free thousandths of each GPU."""
    slow: tuple[int, ...] = ()
    """GPUs that are given last, the slowest at the end."""

    def healthy_first(self, gpus: Iterable[int]) -> list[int]:
        """Return these of its GPUs, the slow ones last, else in their order."""
        if not self.slow:
            return list(gpus)
        return sorted(gpus, key=lambda gpu: self.slow.index(gpu) if gpu in self.slow else -1)


@dataclass(frozen=True, slots=True)
class VictimShare:
    """The part of each node of a class that a running job holds which may be stopped."""

    victim: int
    whole: int
    cpu_milli: int
    mem_mib: int


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes that every job of the instance treats alike."""

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
    """The need of a gang: at least its least number of workers, or none."""

    job_id: str
    attempt: int
    gpus: int
    milli: int
    cpu_milli: int
    mem_mib: int
    min_workers: int
    max_workers: int
    classes: tuple[int, ...]
    """Classes where it may run: GPU type, labels and nodes to avoid are checked already."""
    speeds: tuple[int, ...]
    """Thousandths of full speed on each of `classes`: the GPU type's throughput times health."""
    position: int
    """Place in the queue, 0 first."""
    value: int
    """Value of a start with its least workers at full speed."""
    extra: int = 0
    """Value of each worker beyond."""
    must_start: bool = False
    """The first of the queue that fits: every plan starts it, or lets it wait for faster GPUs, so
    no job starves."""
    victims: tuple[int, ...] = ()
    """Running jobs that it may stop; only a job that does not fit has any."""
    spread: tuple[int, int] | None = None
    """Thousandths of its speed over several nodes of a rack, and over several racks; None: not
    known."""
    waits: tuple[tuple[int, int], ...] = ()
    """(Release, thousandths of full speed with the wait for it): see `look_ahead`."""

    @property
    def is_share(self) -> bool:
        return self.gpus > 0 and self.milli < 1000


@dataclass(frozen=True, slots=True)
class Victim:
    """A running job that some request may stop."""

    job_id: str
    attempt: int
    price: int
    """Price of stopping it: lost work, restart, and the GPUs it loses."""
    migration_price: int
    """Price of migrating it: lost work and restart."""
    request: GangRequest
    """Its need elsewhere; without classes it may not migrate."""


@dataclass(frozen=True, slots=True)
class NextWorker:
    """One worker of the first job in the queue that fits nowhere now, and should fit next."""

    gpus: int = 0
    cpu_milli: int = 0
    mem_mib: int = 0


@dataclass(frozen=True, slots=True)
class Release:
    """GPUs of one node that a running job should give back, side by side."""

    gpus: int
    at: int
    """The expected ms."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A request that does not start now, and the release that it waits for; both by index."""

    request: int
    release: int


@dataclass(frozen=True, slots=True)
class Start:
    """A request, by its index, and the slots that it takes now."""

    request: int
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Reservation:
    """A request that stops others; its workers by node, on GPUs that will be free then."""

    request: int
    workers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class VictimMigration:
    """A victim, by its index, that continues on other GPUs, which are free now."""

    victim: int
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """The starts, stops and migrations of one contended round."""

    starts: tuple[Start, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    stops: tuple[int, ...] = ()
    """Victims that stop, those that migrate among them."""
    migrations: tuple[VictimMigration, ...] = ()
    waits: tuple[Wait, ...] = ()


@dataclass(frozen=True, slots=True)
class Fixed:
    """A job before the window, where greedy puts it; its slots are no longer in the classes."""

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
    releases: tuple[Release, ...] = ()
    """The next GPUs that running jobs should give back, as far as a job may wait for them."""


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

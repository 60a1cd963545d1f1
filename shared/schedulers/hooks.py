"""The seam: six hooks of a scheduler and its next decision, each pure and optional.

A hook gets the view and the scheduler's memory, a dict that JSON can hold, which it may change; the
same view and memory give the same proposal, and chance comes from `view.seed` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

from shared.schedulers.host_shares.sensitivity import PerGpu
from shared.schedulers.placing import best_fit
from shared.schedulers.view import ClusterView, Placement, gpus_of

Memory: TypeAlias = dict[str, Any]
Placements: TypeAlias = dict[str, Placement]
Neighbours: TypeAlias = dict[str, tuple[str, ...]]
"""By a placed job, those that get its GPUs too."""
HostShares: TypeAlias = dict[str, PerGpu]
"""Cores and memory beside each GPU of a job."""
Need = Literal["rates", "work_left", "goodput", "steps", "sensitivity", "stages", "skew"]
Decides = Literal[
    "order", "type", "gpus", "share of time", "nodes", "neighbours", "cores and memory"
]


class Allotment(NamedTuple):
    """GPUs of a job until the next decision, of one type."""

    gpu_type: str
    gpus: int


Allotments: TypeAlias = dict[str, Allotment]


class Scheduler(Protocol):
    """A scheduler; a job without a placement in its proposal holds no GPUs until the next one."""

    name: ClassVar[str]
    source: ClassVar[str]
    """Publication that describes it."""
    needs: ClassVar[tuple[Need, ...]]
    """Estimates without which it decides as if all jobs were alike."""
    decides: ClassVar[tuple[Decides, ...]]

    def rank(self, view: ClusterView, memory: Memory) -> list[str]:
        """Return the ids of all jobs, best first."""
        ...

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        """Return type and number of GPUs of the jobs that run next, first those placed first."""
        ...

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        """Return the nodes of allotments; one that fits on none is left out."""
        ...

    def evict(
        self, view: ClusterView, unplaced: Sequence[str], placements: Placements, memory: Memory
    ) -> list[str]:
        """Return placed jobs that make room for those that fit on no nodes."""
        ...

    def share(self, view: ClusterView, placements: Placements, memory: Memory) -> Neighbours:
        """Return the jobs that share the GPUs of placed ones, at most `view.sharing` allows."""
        ...

    def share_hosts(self, view: ClusterView, placements: Placements, memory: Memory) -> HostShares:
        """Return cores and memory of placed jobs; those of a job left out are not shared."""
        ...

    def wake_s(self, view: ClusterView, placements: Placements, memory: Memory) -> float | None:
        """Return when it has to decide again though no job came or ended; None: never."""
        ...


class Hooks:
    """The defaults: first come, first served; rigid; best fit; nothing is stopped.

    `passes_over`: a job that does not fit does not keep those behind it waiting. A subclass with a
    `name` and a `source` is a scheduler.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()
    decides: ClassVar[tuple[Decides, ...]] = ("order",)
    passes_over: ClassVar[bool] = True
    most_waiting: ClassVar[int] = 256
    """Waiting jobs of a live pool that it sees, the first of the queue: a round waits for it, and
    its memory is recorded."""

    def rank(self, view: ClusterView, memory: Memory) -> list[str]:
        jobs = sorted(view.jobs, key=lambda job: (job.submit_s, job.job_id))
        return [job.job_id for job in jobs]

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        """Return what runs, and then requests in order that the free GPUs of a type fulfil.

        Of the types that a job may use it gets the one with most free GPUs, whatever its speed.
        """
        return admit(view, ranked, running_allotments(view), self.passes_over)

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        return best_fit(view, allotments)

    def evict(
        self, view: ClusterView, unplaced: Sequence[str], placements: Placements, memory: Memory
    ) -> list[str]:
        return []

    def share(self, view: ClusterView, placements: Placements, memory: Memory) -> Neighbours:
        return {}

    def share_hosts(self, view: ClusterView, placements: Placements, memory: Memory) -> HostShares:
        return {}

    def wake_s(self, view: ClusterView, placements: Placements, memory: Memory) -> float | None:
        return None


def running_allotments(view: ClusterView) -> Allotments:
    return {
        job.job_id: Allotment(gpu_type, gpus_of(job.placement))
        for job in view.jobs
        if (gpu_type := view.type_of(job.placement)) is not None
    }


def admit(
    view: ClusterView, ranked: Sequence[str], allotments: Allotments, passes_over: bool = True
) -> Allotments:
    """Return the allotments and those of further requests in order, as far as GPUs are free."""
    free = free_by_type(view, allotments)
    admitted = dict(allotments)
    for job_id in ranked:
        if job_id in admitted:
            continue
        job = view.job_by_id[job_id]
        roomiest = max(
            (name for name in free if job.may_use(name)), key=lambda name: free[name], default=None
        )
        if roomiest is not None and free[roomiest] >= job.gpus:
            free[roomiest] -= job.gpus
            admitted[job_id] = Allotment(roomiest, job.gpus)
        elif not passes_over:
            break
    return admitted


def free_by_type(view: ClusterView, allotments: Mapping[str, Allotment]) -> dict[str, int]:
    free = dict(view.gpus_of_type)
    for allotment in allotments.values():
        free[allotment.gpu_type] -= allotment.gpus
    return free

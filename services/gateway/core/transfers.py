"""Chooses the transfers to propose of jobs with several pools; see decision 0089.

A pool can start a job at once if none waits in it, its free GPUs hold the gang, and the quota of
the tenant and the bound of the user have room. That is advice, from read models: the pool that has
the job decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.contracts.gang_needs import GPU, NodeKind, Shape
from shared.contracts.job_spec import UNKNOWN_USER, JobSpec
from shared.contracts.transfers import Transferred, TransferTarget

PAUSE_MS = 5_000
"""Wait in a pool before the first transfer; twice as long before each further one."""
PAUSE_MOST_MS = 600_000


class WaitingJob(NamedTuple):
    """A job that waits in one of its pools, `since_ms`."""

    job_id: str
    tenant: str
    pool: str
    others: tuple[str, ...]
    """Its other pools that would take it, in its order."""
    shape: Shape
    gpus: float
    spot: bool
    since_ms: int
    transfers: int
    """Transfers so far."""
    user: str = UNKNOWN_USER


class Proposal(NamedTuple):
    """The transfer of a job from the pool in which it waits to another one."""

    job_id: str
    tenant: str
    from_pool: str
    to_pool: str


@dataclass(slots=True)
class Room:
    """The free GPUs, cores and memory of a pool in which no job waits, by node."""

    nodes: list[NodeKind]
    """Its nodes that may be used, with what is free on each: whole GPUs, cores and memory."""
    quota_gpus: dict[str, float] = field(default_factory=dict)
    """By tenant with a bound: GPUs that its jobs may still get."""
    user_gpus: dict[tuple[str, str], float] = field(default_factory=dict)
    """By tenant and user with a bound, likewise; spot jobs count too."""

    def take(self, job: WaitingJob) -> bool:
        """Take what the job needs; return whether it is there."""
        bound = None if job.spot else self.quota_gpus.get(job.tenant)
        of_user = self.user_gpus.get((job.tenant, job.user))
        if any(left is not None and left < job.gpus for left in (bound, of_user)):
            return False
        taken, left = list(self.nodes), job.shape.min_workers
        for index, node in enumerate(taken):
            workers = min(left, node.workers(job.shape))
            if workers:
                taken[index], left = _without(node, job.shape, workers), left - workers
            if not left:
                break
        if left:
            return False
        self.nodes = taken
        if bound is not None:
            self.quota_gpus[job.tenant] = bound - job.gpus
        if of_user is not None:
            self.user_gpus[job.tenant, job.user] = of_user - job.gpus
        return True


def pause_ms(transfers: int) -> int:
    """Return how long a job waits in a pool before it may be transferred again."""
    return min(PAUSE_MS << min(transfers, 16), PAUSE_MOST_MS)


def proposals(
    waiting: Iterable[WaitingJob], rooms: Mapping[str, Room], now: int
) -> Iterator[Proposal]:
    """Yield the transfers to propose at `now` ms; the one that waited longest comes first."""
    for job in sorted(waiting, key=lambda job: (job.since_ms, job.job_id)):
        if now - job.since_ms < pause_ms(job.transfers):
            continue
        for pool in job.others:
            if pool in rooms and rooms[pool].take(job):
                yield Proposal(job.job_id, job.tenant, job.pool, pool)
                break


def transferred_spec(spec: JobSpec, job_id: str, from_pool: str, target: TransferTarget) -> JobSpec:
    """Return the specification with which a job is submitted to the pool that it goes to.

    Jobs on which it depended have succeeded in the pool that it comes from.
    """
    before = spec.transferred
    transferred = Transferred(
        from_job_id=job_id,
        from_pool=from_pool,
        first_job_id=before.first_job_id if before else job_id,
        transfers=(before.transfers if before else 0) + 1,
        failures=target.failures,
        resumes=target.resumes,
        done_s=target.done_s,
    )
    return spec.model_copy(update={"transferred": transferred, "depends_on": ()})


def _without(node: NodeKind, shape: Shape, workers: int) -> NodeKind:
    """Return the node with what so many workers leave of it; parts of a GPU count as the whole."""
    gpus = -(-workers // (GPU // shape.milli)) if shape.is_share else workers * shape.gpus
    return node._replace(
        gpus=node.gpus - gpus,
        cpu_milli=node.cpu_milli - workers * shape.cpu_milli,
        mem_mib=node.mem_mib - workers * shape.mem_mib,
    )

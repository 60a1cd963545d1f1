"""A proposal as allotments of a pool: workers of whole gangs, and their nodes if they were chosen.

A scheduler counts GPUs, and a worker lies on one node: where the GPUs of a job on a node are no
whole workers the pool chooses its nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from services.placement.core.pool.schedule import Allotted
from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.pool.state import Pool
from services.placement.core.scheduled.claims import holds_in_view, is_scheduled
from shared.contracts.construct import construct
from shared.contracts.proposals import ProposedGpus
from shared.contracts.schedules import AllottedGpus, AllottedNode

FIELDS_BYTES = 48
"""Names of the fields of an allotment or of a node, and their numbers."""


def allotments(pool: Pool, proposed: Iterable[ProposedGpus]) -> Iterator[AllottedGpus]:
    """Yield the allotments by job id, with those of jobs that the scheduler does not see.

    A job that has left since the view was taken has none; one that is on the way to other nodes
    has what is reserved for it there.
    """
    by_id: dict[str, Allotted] = {}
    for job in pool.running.values():
        if is_scheduled(job) and job.phase != "stopping" and not holds_in_view(pool, job):
            node = pool.board.nodes[job.nodes[0]]
            by_id[job.job_id] = Allotted(node.kind.gpu_type, len(job.allocations))
    for own in proposed:
        if (of := pool.jobs.get(own.job_id)) is not None:
            workers = max(of.shape.min_workers, own.gpus // of.shape.gpus)
            nodes = workers_by_node(of.shape, own, workers)
            by_id[own.job_id] = Allotted(own.gpu_type, workers, nodes)
    for job_id, target in pool.migrations.items():
        if job_id not in by_id and is_scheduled(pool.jobs[job_id]):
            reserved = pool.board.nodes.get(target[0].node_id)
            if reserved is not None:
                by_id[job_id] = Allotted(reserved.kind.gpu_type, len(target))
    return (of_job(job_id, by_id[job_id]) for job_id in sorted(by_id))


def workers_by_node(shape: Shape, own: ProposedGpus, workers: int) -> tuple[tuple[str, int], ...]:
    """Return the workers of a gang by node; () if they are none, or no node was chosen."""
    if any(node.gpus % shape.gpus for node in own.nodes):
        return ()
    nodes = tuple((node.node_id, node.gpus // shape.gpus) for node in own.nodes)
    return nodes if sum(count for _, count in nodes) == workers else ()


def nodes_of(slots: Iterable[Slot]) -> tuple[tuple[str, int], ...]:
    """Return the workers of a gang by node, nodes in order."""
    return tuple(sorted(Counter(slot.node_id for slot in slots).items()))


def still_allotted(pool: Pool) -> tuple[AllottedGpus, ...]:
    """Return the last allotments of the jobs that are still there.

    One that has started since stays where it is, chosen nodes or not.
    """
    return tuple(
        of_job(job_id, own if job_id in pool.waiting else own._replace(nodes=()))
        for job_id, own in pool.schedule.allotted.items()
        if job_id in pool.jobs
    )


def of_job(job_id: str, own: Allotted) -> AllottedGpus:
    nodes = tuple(
        construct(AllottedNode, node_id=node_id, workers=workers) for node_id, workers in own.nodes
    )
    return construct(
        AllottedGpus, job_id=job_id, gpu_type=own.gpu_type, workers=own.workers, nodes=nodes
    )


def bytes_of(own: AllottedGpus) -> int:
    """Return about the bytes of an allotment in a record."""
    nodes = sum(len(node.node_id) + FIELDS_BYTES for node in own.nodes)
    return len(own.job_id) + len(own.gpu_type) + FIELDS_BYTES + nodes

"""The claims of the last proposal on free GPUs, and those that serve nothing."""

from __future__ import annotations

from services.placement.core.pool.allocations import slots_of
from services.placement.core.pool.job import Job
from services.placement.core.pool.schedule import Allotted
from services.placement.core.pool.shape import GPU, Shape
from services.placement.core.pool.state import Pool
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import probe_anywhere


def is_scheduled(job: Job) -> bool:
    """Return whether the scheduler decides about the job: it has whole GPUs and may run anywhere
    that has room.
    """
    return job.shape.gpus > 0 and job.shape.milli == GPU and not job.shape.nodes


def holds_in_view(pool: Pool, job: Job) -> bool:
    """Return whether the job has GPUs that the scheduler sees as its own."""
    if job.phase not in ("placed", "running") or not is_scheduled(job):
        return False
    return all(map(pool.board.is_indexed, slots_of(job)))


def allotted_shape(job: Job, own: Allotted) -> Shape:
    """Return the shape of the job with so many workers on this type."""
    return job.shape._replace(
        types=(own.gpu_type,), min_workers=own.workers, max_workers=own.workers
    )


def has_unclaimed_room(pool: Pool) -> bool:
    """Return whether a waiting job without an allotment fits in the GPUs that no job claims."""
    free = dict(pool.board.free_gpus)
    allotted = pool.schedule.allotted
    for job_id, own in allotted.items():
        if (job := pool.waiting.get(job_id)) is not None:
            free[own.gpu_type] = free.get(own.gpu_type, 0) - own.workers * job.shape.gpus
    for job in pool.waiting.values():
        if job.job_id in allotted or not is_scheduled(job):
            continue
        needed = job.shape.min_workers * job.shape.gpus
        if any(free[name] >= needed for name in job.shape.types or free if name in free):
            return True
    return False


def has_vain_claim(pool: Pool) -> bool:
    """Return whether an allotted job waits for GPUs which nothing that stops will release."""
    if any(job.phase == "stopping" for job in pool.running.values()):
        return False
    return any(
        not is_free(pool, job, own) or is_scattered(pool, job)
        for job_id, own in pool.schedule.allotted.items()
        if (job := pool.waiting.get(job_id)) is not None
    )


def is_free(pool: Pool, job: Job, own: Allotted) -> bool:
    """Return whether as many GPUs of the type are free as the job is allotted."""
    return pool.board.free_gpus.get(own.gpu_type, 0) >= own.workers * job.shape.gpus


def is_scattered(pool: Pool, job: Job) -> bool:
    """Return whether a waiting job fits on no nodes, although its allotted GPUs are free.

    A scheduler counts GPUs by type. The next proposal leaves the job out: its claim would keep them
    from all others, as long as what runs beside them.
    """
    own = pool.schedule.allotted.get(job.job_id)
    if own is None or job.phase != "waiting" or not is_free(pool, job, own):
        return False
    with Trial(pool.board) as trial:
        return not probe_anywhere(trial, allotted_shape(job, own), job)

"""The overdue job: the one job for which GPUs are reserved because it waited too long."""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import SPOT_TIER
from services.placement.core.pool.state import Pool
from shared.contracts.checkpoint import wall_ms

LACKS_NODES = ("no_node_fits", "draining", "disk_full")
"""Reasons of a job that free GPUs would not end: the nodes that it needs are not in the round."""
LEAST_HOLD_S = 86_400.0
"""Cluster s that a reservation for an overdue job lasts at least, before it lapses."""


class Overdue(NamedTuple):
    """The overdue job of a round, and how long GPUs are reserved for it."""

    job_id: str = ""
    """Empty: there is none."""
    from_ms: int | None = None
    """Time of the first round that reserved them; None: this one is it, or the pool is not
    guarded."""
    lapses_at_ms: int | None = None
    """Time at which the reservation lapses; None: never."""


def overdue_at(pool: Pool, now: int) -> Overdue:
    """Return the overdue job of a round at `now` ms."""
    job_id = overdue_job(pool, now)
    if not job_id:
        return Overdue()
    from_ms = pool.overdue_from_ms if job_id == pool.overdue else None
    if pool.settings is None or not pool.settings.guard_predictions:
        return Overdue(job_id, from_ms)
    began_ms = now if from_ms is None else from_ms
    return Overdue(job_id, from_ms, lapse_ms(pool, pool.waiting[job_id], began_ms))


def overdue_job(pool: Pool, now: int) -> str:
    """Return the job that waited longest beyond `reserve_wait_s`, in the highest class; or none.

    It stays the same job, whatever its rank, until it runs or its reservation lapses; then another
    one has its turn. Jobs wait in the order in which they came, so that none is looked at that is
    not overdue.
    """
    after_s = pool.settings.reserve_wait_s if pool.settings else None
    if after_s is None or now < pool.unreserved_until_ms or has_lapsed(pool, now):
        return ""
    due = now - round(after_s * 1000 / pool.time_scale)
    overdue = [
        (job.tier, job.since, job.job_id)
        for job in takewhile(lambda job: job.since <= due, pool.waiting.values())
        if job.tier < SPOT_TIER
        and job.hold_reason not in LACKS_NODES
        and now >= job.unreserved_until_ms
    ]
    return min(overdue)[2] if overdue else ""


def lapse_ms(pool: Pool, job: Job, from_ms: int) -> int:
    """Return when a reservation lapses that began at `from_ms`: after as long as the job had waited
    by then, but a day at least.
    """
    return from_ms + max(from_ms - job.since, wall_ms(LEAST_HOLD_S, pool.time_scale))


def has_lapsed(pool: Pool, now: int) -> bool:
    """Return whether the reservation for the noted overdue job has lasted long enough in vain."""
    job = pool.waiting.get(pool.overdue)
    return job is not None and now >= lapse_ms(pool, job, pool.overdue_from_ms)


def note_overdue(pool: Pool, at: int) -> None:
    """Note at the end of a round for which job GPUs are reserved from it on, or that none are.

    After a lapse none are for as long as the reservation lasted, and none for the same job for
    twice as long. A job that is concerned publishes its hold reason anew.
    """
    if pool.settings is None or not pool.settings.guard_predictions:
        pool.overdue, pool.unreserved_until_ms = "", 0
        if pool.lapsed_from_ms:
            forget_lapses(pool)
        return
    if has_lapsed(pool, at):
        job = pool.waiting[pool.overdue]
        held_ms = at - pool.overdue_from_ms
        job.unreserved_until_ms = at + 2 * held_ms
        pool.unreserved_until_ms = at + held_ms
        pool.lapsed_from_ms = pool.overdue_from_ms
        pool.overdue = ""
    else:
        overdue = overdue_job(pool, at)
        if overdue == pool.overdue:
            return
        pool.overdue, pool.overdue_from_ms = overdue, at
        if not overdue:
            return
        job = pool.waiting[overdue]
    job.hold_reason = ""
    pool.unreported[job.job_id] = None


def forget_lapses(pool: Pool) -> None:
    """Forget which reservations lapsed: the rule has been switched off."""
    pool.lapsed_from_ms = 0
    for job in pool.jobs.values():
        job.unreserved_until_ms = 0

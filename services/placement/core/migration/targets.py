"""The target of a migration or resize: slots that are reserved until the job is placed on them.

The path is that of a preemption: the gang stops with its grace, its allocations are released and
the job waits again (`JobRequeued`). Its target is reserved from the decision to the first round
after that. This round places the job on its target before it scans the queue. If the target is not
free then (a node was lost or cordoned), the job waits in the queue like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from services.placement.core.lifecycle import gangs
from services.placement.core.pool.allocations import allocations_of, gpus_in
from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import Slot
from services.placement.core.pool.state import Pool
from services.placement.core.pool.trial import Trial
from shared.ledger.decider import Decision

POLICY = "kept"
"""Policy of a `JobPlaced` on such a target, which no planner decided in this round."""


@contextmanager
def targets_reserved(pool: Pool) -> Iterator[None]:
    """Take the targets of all migrations and resizes on the board while the context is open."""
    board = pool.board
    with Trial(board) as trial:
        for job_id, target in pool.migrations.items():
            job = pool.jobs[job_id]
            if job.phase != "waiting" or can_land(pool, job, target):
                trial.reserve([slot for slot in target if board.is_indexed(slot)])
        yield


def land(pool: Pool, now: int) -> Iterator[Decision]:
    """Place each job that waits again on its target, if all of the target is free."""
    for job_id, target in list(pool.migrations.items()):
        job = pool.jobs[job_id]
        if job.phase == "waiting" and can_land(pool, job, target):
            yield place_on_target(pool, job, target, now)


def can_land(pool: Pool, job: Job, target: Iterable[Slot]) -> bool:
    """Return whether no round has passed over the job since it waits again, and its target is
    free.
    """
    return job.round_no == pool.round_no and pool.board.are_free(target)


def place_on_target(pool: Pool, job: Job, target: tuple[Slot, ...], now: int) -> Decision:
    """Return the start of the job on its target."""
    allocations = allocations_of(target)
    nodes = {slot.node_id for slot in target}
    terms = {
        "nodes": float(len(nodes)),
        "gpus": gpus_in(target),
        "health": float(min(pool.board.health(slot.node_id, slot.gpus) for slot in target)),
    }
    score = pool.ranks.scores.get(job.job_id)
    return gangs.place_job(job, allocations, now, policy=POLICY, terms=terms, score=score)

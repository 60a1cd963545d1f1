"""A job leaves the slow nodes of its gang, or restarts on them, as a plan of fail-slow says."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from services.placement.core.migration.drain import with_workers
from services.placement.core.migration.migrate import migrate_job
from services.placement.core.migration.targets import targets_reserved
from services.placement.core.pool.allocations import slots_by_rank
from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import Slot
from services.placement.core.pool.state import Pool
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import place
from services.placement.core.round.plan import Migration
from services.placement.core.round.reserve import reserve_freed
from services.placement.core.round.view import view_of
from shared.contracts.mitigation import MitigationApplied
from shared.contracts.nodes import NodeCordoned
from shared.ledger.decider import Decision, Input


def leave_slow_nodes(
    pool: Pool, message: MitigationApplied, item: Input, now: int
) -> Iterator[Decision]:
    """Migrate the job if there is room on other nodes now; it goes on as it is otherwise.

    The nodes are cordoned where the plan says so, or the next job would suffer there. A plan for
    an earlier attempt, or for a job that stops or migrates already, has no effect. A plan to
    measure moves nothing; its verdict may cordon. A plan to restart keeps all slots.
    """
    if message.level == "validate":
        yield from cordon_left(pool, message, item)
        return
    job = pool.jobs.get(message.job_id)
    if job is None or job.attempt != message.attempt:
        return
    if job.phase != "running" or job.job_id in pool.migrations:
        return
    if message.level == "restart" and can_restart(pool, job):
        yield migrate_job(pool, Migration(job, slots_by_rank(job), "restart"), now, item.id)
    if message.level != "migrate":
        return
    if target := room_without(pool, job, message.node_ids, now):
        yield from cordon_left(pool, message, item)
        yield migrate_job(pool, Migration(job, target, "slow_node"), now, item.id)


def can_restart(pool: Pool, job: Job) -> bool:
    """Return whether the job has checkpoints, and its nodes take it again: none is cordoned."""
    is_open = not pool.cordons.keys() & set(job.nodes)
    return is_open and job.interval_ms(pool.time_scale) is not None


def cordon_left(pool: Pool, message: MitigationApplied, item: Input) -> Iterator[Decision]:
    """Cordon the slow nodes until an operator lifts it or dismisses one of the suspicions.

    That replaces a cordon that would end by itself, as an operator's does.
    """
    for node_id in message.node_ids if message.cordons else ():
        ends_by_itself = node_id in pool.leaving
        if node_id in pool.board.nodes and (ends_by_itself or node_id not in pool.cordons):
            reason = f"slow: plan {message.plan_id}"
            yield item.decision(
                NodeCordoned(node_id=node_id, reason=reason, fault_ids=message.fault_ids)
            )


def room_without(pool: Pool, job: Job, nodes: Collection[str], now: int) -> list[Slot]:
    """Return a slot per worker, new ones for those on these nodes; empty if one has none."""
    view, slots = view_of(pool, now), slots_by_rank(job)
    leaving = [slot for slot in slots if slot.node_id in nodes]
    if not leaving:
        return []
    with targets_reserved(pool), Trial(pool.board) as trial:
        for job_id in pool.reservations:
            if other := pool.waiting.get(job_id):
                reserve_freed(view, trial, other, other.shape)
        shape = with_workers(job.shape, len(leaving))
        new = iter(place(trial, shape, (*job.avoid, *nodes)))
        target = [next(new, None) if slot in leaving else slot for slot in slots]
    return [slot for slot in target if slot] if None not in target else []

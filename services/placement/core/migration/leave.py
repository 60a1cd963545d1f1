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
from shared.contracts.mitigation import (
    TURNED_DOWN_FROM,
    MitigationApplied,
    MitigationCleared,
    MitigationTurnedDown,
    TurnedDownReason,
)
from shared.contracts.nodes import NodeCordoned
from shared.ledger.decider import Decision, Input

FaultPlan = MitigationApplied | MitigationTurnedDown


def leave_slow_nodes(
    pool: Pool, message: MitigationApplied, item: Input, now: int
) -> Iterator[Decision]:
    """Migrate or restart the job, or turn the plan down; without room a migration waits for it.

    The nodes are cordoned where the plan says so, or the next job would suffer there. A plan to
    measure moves nothing; its verdict may cordon. A plan to restart keeps all slots.
    """
    if message.level == "validate":
        yield from cordon_left(pool, message, item.id, item.traceparent)
    if message.level not in ("migrate", "restart"):
        return
    job = pool.jobs.get(message.job_id)
    if reason := obstacle(pool, message, job):
        yield from turn_down(pool, message, job, reason, item.id)
    elif message.level == "restart" and job is not None:
        yield migrate_job(pool, Migration(job, slots_by_rank(job), "restart"), now, item.id)
    elif job is not None and (target := room_without(pool, job, message.node_ids, now)):
        yield from migrate_off(pool, job, message, target, now, item.id)
    else:
        yield from turn_down(pool, message, job, "no_room", item.id)


def retry_waiting_plans(pool: Pool, now: int) -> Iterator[Decision]:
    """Migrate the jobs that wait for room to leave slow nodes, if they have it by now.

    They come before the queue: each gives back as many GPUs as it takes, and a gang that stalls
    wastes all that it has. A pool without mitigation lets none leave.
    """
    if pool.settings is None or pool.settings.mitigation == "off":
        return
    for job_id, plan in list(pool.waiting_plans.items()):
        job = pool.jobs[job_id]
        if target := room_without(pool, job, plan.node_ids, now):
            yield from migrate_off(pool, job, plan, target, now, "")


def end_wait_for_room(pool: Pool, message: MitigationCleared, item: Input) -> Iterator[Decision]:
    """Drop a plan that waits for room, as it is of no use any more."""
    plan = pool.waiting_plans.get(message.job_id)
    if plan is not None and plan.plan_id == message.plan_id:
        yield from turn_down(pool, plan, pool.jobs[message.job_id], "over", item.id)


def obstacle(pool: Pool, plan: FaultPlan, job: Job | None) -> TurnedDownReason | None:
    """Return why the plan cannot be carried out, whatever room there is; None if it can."""
    if job is None or job.attempt != plan.attempt:
        return "not_running"
    if job.phase != "running" or job.job_id in pool.migrations:
        return "not_running"
    if plan.level == "migrate":
        return None if set(plan.node_ids) & set(job.nodes) else "not_there"
    if pool.cordons.keys() & set(job.nodes):
        return "node_cordoned"
    return "no_checkpoints" if job.interval_ms(pool.time_scale) is None else None


def turn_down(
    pool: Pool, plan: FaultPlan, job: Job | None, reason: TurnedDownReason, cause: str
) -> Iterator[Decision]:
    """Record why a plan is not carried out; earlier releases cannot read it."""
    if pool.settings is None or pool.settings.release < TURNED_DOWN_FROM:
        return
    event = MitigationTurnedDown(
        plan_id=plan.plan_id,
        job_id=plan.job_id,
        tenant=plan.tenant,
        attempt=plan.attempt,
        level=plan.level,
        node_ids=plan.node_ids,
        fault_ids=plan.fault_ids,
        cordons=plan.cordons,
        reason=reason,
        waits=reason == "no_room",
    )
    if pool.waiting_plans.get(plan.job_id) != event:
        yield Decision(event, cause, job.trace if job else "")


def migrate_off(
    pool: Pool, job: Job, plan: FaultPlan, target: list[Slot], now: int, cause: str
) -> Iterator[Decision]:
    yield from cordon_left(pool, plan, cause, job.trace)
    yield migrate_job(pool, Migration(job, target, "slow_node"), now, cause)


def cordon_left(pool: Pool, plan: FaultPlan, cause: str, trace: str) -> Iterator[Decision]:
    """Cordon the slow nodes until an operator lifts it or dismisses one of the suspicions.

    That replaces a cordon that would end by itself, as an operator's does.
    """
    for node_id in plan.node_ids if plan.cordons else ():
        ends_by_itself = node_id in pool.leaving
        if node_id in pool.board.nodes and (ends_by_itself or node_id not in pool.cordons):
            reason = f"slow: plan {plan.plan_id}"
            event = NodeCordoned(node_id=node_id, reason=reason, fault_ids=plan.fault_ids)
            yield Decision(event, cause, trace)


def room_without(pool: Pool, job: Job, nodes: Collection[str], now: int) -> list[Slot]:
    """Return a slot per worker, new ones for those on these nodes; empty if one has none.

    The new GPUs are of the types that the gang has, as one of a slower type would hold it up again.
    """
    view, slots = view_of(pool, now), slots_by_rank(job)
    leaving = [slot for slot in slots if slot.node_id in nodes]
    if not leaving:
        return []
    with targets_reserved(pool), Trial(pool.board) as trial:
        for job_id in pool.reservations:
            if other := pool.waiting.get(job_id):
                reserve_freed(view, trial, other, other.shape)
        types = {pool.board.nodes[slot.node_id].kind.gpu_type for slot in slots}
        shape = with_workers(job.shape, len(leaving))._replace(types=tuple(sorted(types)))
        new = iter(place(trial, shape, (*job.avoid, *nodes)))
        target = [next(new, None) if slot in leaving else slot for slot in slots]
    return [slot for slot in target if slot] if None not in target else []

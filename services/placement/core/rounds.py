"""When a round is due, and what its plan becomes in the ledger."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.lifecycle import gangs
from services.placement.core.moves import migrate, resize
from services.placement.core.pool.allocations import allocations_of
from services.placement.core.pool.shape import GPU
from services.placement.core.pool.state import Job, Pool
from services.placement.core.round.greedy import GREEDY, plan
from services.placement.core.round.view import Assignment, Eviction, Hold, Plan, View, view_of
from services.placement.core.solver import contended
from shared.contracts.construct import construct
from shared.contracts.placement import JobHeld, JobPlaced, RoundEnded, SolverStatus
from shared.ledger.decider import Decision

SETTLE_MOST = 10
"""Changes may push a round off for so many times its `settle_ms`, counted from the first."""


def due_at(pool: Pool) -> int | None:
    """ms of the next round, None while nothing could come of one.

    Where nobody was passed over the next job need not wait: there is no line to jump and the
    round is as long as the news. A contended pool has one round per `round_ms`.
    """
    if pool.settings is None or not (pool.waiting or resize.may_grow(pool)):
        return None
    if pool.open_round is not None:
        return pool.open_round.until
    settled = settled_at(pool, pool.settings.settle_ms)
    if settled is None:
        return None
    undisturbed = pool.changed and pool.waiting and pool.unscanned == len(pool.waiting)
    return max(settled, pool.round_at + (0 if undisturbed else pool.settings.round_ms))


def settled_at(pool: Pool, settle_ms: int) -> int | None:
    """ms when the changes have settled; a moment that a round waits for is a change as well."""
    again = pool.again_at
    if not pool.changed:
        return None if again is None else again + settle_ms
    first, last = pool.first_change, pool.last_change
    if again is not None and again <= settled(first, last, settle_ms):
        first, last = min(first, again), max(last, again)
    return settled(first, last, settle_ms)


def settled(first: int, last: int, settle_ms: int) -> int:
    return min(last + settle_ms, first + SETTLE_MOST * settle_ms)


def run(pool: Pool, now: int) -> Iterator[Decision]:
    due = due_at(pool)
    if due is None or due > now:
        return
    yield from migrate.landings(pool, now)
    view = view_of(pool, now)
    with migrate.reserved(pool):
        proposal = plan(view, GREEDY)
    if contended.asks(pool, view, proposal):
        yield contended.opened(pool, now)
    else:
        yield from concluded(pool, view, proposal, "late" if pool.open_round else "")


def concluded(pool: Pool, view: View, proposal: Plan, solver: SolverStatus) -> Iterator[Decision]:
    """The round ends with greedy's plan of it; `solver`: why nobody else planned it."""
    looked = not pool.waiting
    with migrate.reserved(pool):
        resize.propose(pool, view, proposal)
        migrations = migrate.allowed(pool, view, proposal)
    for eviction in proposal.evictions:
        yield evicted(eviction, view.now)
    for assignment in proposal.places:
        yield placed(view, proposal, assignment, solver)
    for held in proposal.holds:
        yield told(held)
    for migration in migrations:
        yield migrate.moved(pool, migration, view.now, "")
    for change in proposal.resizes:
        yield resize.resized(pool, change, view.now)
    if pool.waiting or pool.open_round or resize.may_grow(pool):
        yield Decision(
            construct(
                RoundEnded,
                pool=pool.name,
                waiting=len(pool.waiting),
                unfinished=proposal.unfinished or (not looked and resize.may_grow(pool)),
                again_at=proposal.again_at,
            )
        )


def evicted(eviction: Eviction, now: int) -> Decision:
    victim, by = eviction.job, eviction.by
    price = price_of(eviction, now)
    reason = reason_of(victim, by)
    return gangs.preempted(victim, reason, by.job_id, eviction.lost_work_s, by.cause, price)


def reason_of(victim: Job, by: Job) -> gangs.Preemption:
    if victim.tier == by.tier:
        return "outranked"
    return "spot_reclaimed" if victim.spec.spot else "higher_class"


def price_of(eviction: Eviction, now: int) -> dict[str, float]:
    """Both scores if they decided, and how long the victim ran."""
    found: dict[str, float] = {"ran_ms": float(eviction.job.ran_ms(now))}
    if eviction.score is not None:
        found["score"] = eviction.score
    if eviction.by_score is not None:
        found["by_score"] = eviction.by_score
    return found


def placed(
    view: View, proposal: Plan, assignment: Assignment, solver: SolverStatus = ""
) -> Decision:
    job = assignment.job
    score = view.scores.get(job.job_id)
    event = construct(
        JobPlaced,
        job_id=job.job_id,
        tenant=job.tenant,
        attempt=job.attempt,
        allocations=allocations_of(assignment.slots),
        waited_ms=max(0, view.now - job.since),
        policy=f"{view.order}+{GREEDY.name}",
        score=score,
        model_sha256=model_of(view, score),
        terms=terms(view, proposal, assignment),
        solver=solver,
    )
    return gangs.said(job, job.cause, event)


def model_of(view: View, score: float | None) -> str:
    """Of the learned policy, where it ranked the job."""
    return "" if score is None else view.model


def terms(view: View, proposal: Plan, assignment: Assignment) -> dict[str, float]:
    """Enough to see why here and why now."""
    found: dict[str, float] = {
        "position": float(assignment.position),
        "waiting": float(proposal.waiting),
        "nodes": float(len({slot.node_id for slot in assignment.slots})),
        "node_gpus_left": float(assignment.gpus_left),
    }
    if assignment.slots[0].milli < GPU:
        found["share_milli"] = float(assignment.slots[0].milli)
    if view.board.slow:
        health = min(view.board.health(slot.node_id) for slot in assignment.slots)
        if health < 1:
            found["health"] = health
    return {**found, **rank_terms(view)}


def rank_terms(view: View) -> dict[str, float]:
    if not view.ranks_at:
        return {}
    return {"rank_age_s": view.ranks_age_s, "rank_stale": float(view.ranks_stale)}


def told(held: Hold) -> Decision:
    job = held.job
    event = construct(
        JobHeld,
        job_id=job.job_id,
        tenant=job.tenant,
        reason=held.reason,
        short_gpus=held.short_gpus,
        detail=held.detail,
    )
    return gangs.said(job, job.cause, event)

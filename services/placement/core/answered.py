"""The solver's answer to an open round: what still holds becomes facts, greedy plans the rest."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core import rounds
from services.placement.core.lifecycle import gangs
from services.placement.core.moves import migrate
from services.placement.core.pool.allocations import slot_of
from services.placement.core.pool.state import Job, Pool
from services.placement.core.round.greedy import GREEDY, plan
from services.placement.core.round.view import Eviction, Migration, Plan, View, view_of
from shared.contracts.placement import JobPlaced, PlannedStart, PlannedStop, PlanReady
from shared.ledger.decider import Decision

POLICY = "cpsat"


def answered(pool: Pool, message: PlanReady, now: int) -> Iterator[Decision]:
    """An answer to a round that has ended meanwhile is too late, and nothing."""
    if pool.open_round is None or pool.open_round.seq != message.at_seq:
        return
    yield from migrate.landings(pool, now)
    view = view_of(pool, now)
    targets = {migration.job_id: migration for migration in message.moves}
    for stop in message.stops:
        yield from stopped(pool, view, stop, targets.get(stop.job_id))
    for start in message.starts:
        yield from started(pool, view, message, start)
    solver = "" if message.starts or message.stops else message.status
    rest = view_of(pool, now)
    with migrate.reserved(pool):
        proposal = plan(rest, GREEDY, frozenset(message.weighed))
    yield from rounds.concluded(pool, rest, proposal, solver)


def stopped(
    pool: Pool, view: View, stop: PlannedStop, target: PlannedStart | None
) -> Iterator[Decision]:
    """Both are there, and the rules still allow it; it moves where it may, else it waits again."""
    victim, by = view.jobs.get(stop.job_id), view.waiting.get(stop.by_job_id)
    if victim is None or by is None or victim.attempt != stop.attempt:
        return
    victims = view.victims
    if victim not in victims.of(by):
        return
    if target is not None and (migration := movable(pool, view, victim, target, by)):
        yield migrate.moved(pool, migration, view.now, by.cause)
        return
    scores = victims.score_of(victim), victims.score_of(by)
    yield rounds.evicted(Eviction(victim, by, victims.lost_work_s(victim), *scores), view.now)


def movable(pool: Pool, view: View, victim: Job, target: PlannedStart, by: Job) -> Migration | None:
    slots = [slot_of(allocation) for allocation in target.allocations]
    proposal = Plan(migrations=[Migration(victim, slots, "defragment", by)])
    with migrate.reserved(pool):
        found = migrate.allowed(pool, view, proposal)
    return found[0] if found else None


def started(pool: Pool, view: View, message: PlanReady, start: PlannedStart) -> Iterator[Decision]:
    """The job still waits for this attempt, and all of its slots are free and kept for nobody."""
    job = pool.waiting.get(start.job_id)
    if job is None or job.attempt != start.attempt or job.not_before > view.now:
        return
    with migrate.reserved(pool):
        are_free = migrate.are_free(pool.board, map(slot_of, start.allocations))
    if are_free:
        yield placed(view, message, start, job)


def placed(view: View, message: PlanReady, start: PlannedStart, job: Job) -> Decision:
    score = view.scores.get(job.job_id)
    event = JobPlaced(
        job_id=job.job_id,
        tenant=job.tenant,
        attempt=job.attempt,
        allocations=start.allocations,
        waited_ms=max(0, view.now - job.since),
        policy=f"{view.order}+{POLICY}",
        score=score,
        model_sha256=rounds.model_of(view, score),
        terms=terms(view, message, start),
        solver=message.status,
    )
    return gangs.said(job, job.cause, event)


def terms(view: View, message: PlanReady, start: PlannedStart) -> dict[str, float]:
    """This job's own, then those of the plan that it is part of."""
    return {
        **start.terms,
        "waiting": len(view.waiting),
        **rounds.rank_terms(view),
        "objective": message.objective,
        "greedy_objective": message.greedy,
        "bound": message.bound,
        "solve_ms": message.solve_ms,
        **{f"plan_{name}": value for name, value in message.terms.items()},
    }

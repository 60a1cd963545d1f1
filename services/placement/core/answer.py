"""The solver's answer to an open round: what still holds is decided, greedy plans the rest."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.carry_out import carry_out
from services.placement.core.complete import complete_plan
from services.placement.core.migration.migrate import migrate_job
from services.placement.core.migration.rules import allowed_migrations
from services.placement.core.migration.targets import land, targets_reserved
from services.placement.core.pool.allocations import slot_of
from services.placement.core.pool.job import Job
from services.placement.core.pool.state import Pool
from services.placement.core.round.greedy import GREEDY, plan
from services.placement.core.round.plan import Eviction, Migration, Plan
from services.placement.core.round.preempt import preempt_victim
from services.placement.core.round.start import rank_terms, start_job
from services.placement.core.round.view import View, view_of
from shared.contracts.solver_plan import PlannedStart, PlannedStop, PlannedWait, PlanReady
from shared.ledger.decider import Decision

POLICY = "cpsat"


def apply_answer(pool: Pool, message: PlanReady, now: int) -> Iterator[Decision]:
    """Carry out the answer and end the round; an answer to a round that has ended is too late."""
    if pool.open_round is None or pool.open_round.seq != message.at_seq:
        return
    yield from land(pool, now)
    view = view_of(pool, now)
    targets = {migration.job_id: migration for migration in message.moves}
    for stop in message.stops:
        yield from stop_victim(pool, view, stop, targets.get(stop.job_id))
    for start in message.starts:
        yield from start_planned(pool, view, message, start)
    solver = "" if message.starts or message.stops else message.status
    rest = view_of(pool, now)
    with targets_reserved(pool):
        waits = {wait.job_id: wait.until for wait in message.waits if is_attempt(rest, wait)}
        proposal = plan(rest, GREEDY, frozenset(message.weighed), waits)
        complete_plan(pool, rest, proposal)
    yield from carry_out(pool, rest, proposal, solver)


def stop_victim(
    pool: Pool, view: View, stop: PlannedStop, target: PlannedStart | None
) -> Iterator[Decision]:
    """Stop a victim: it migrates if it has a target that the rules allow, else it waits again."""
    eviction = allowed_stop(view, stop)
    if eviction is None:
        return
    victim, by = eviction.job, eviction.by
    if target is not None:
        slots = [slot_of(allocation) for allocation in target.allocations]
        migration = Migration(victim, slots, "defragment", by)
        with targets_reserved(pool):
            migrations = allowed_migrations(pool, view, Plan(migrations=[migration]))
        if migrations:
            yield migrate_job(pool, migration, view.now, by.cause)
            return
    yield preempt_victim(eviction, view.now)


def allowed_stop(view: View, stop: PlannedStop) -> Eviction | None:
    """Return the eviction if both jobs are still there and one may stop the other."""
    victim, by = view.jobs.get(stop.job_id), view.waiting.get(stop.by_job_id)
    if victim is None or by is None or victim.attempt != stop.attempt:
        return None
    return view.victims.eviction(victim, by) if victim in view.victims.of(by) else None


def start_planned(
    pool: Pool, view: View, message: PlanReady, start: PlannedStart
) -> Iterator[Decision]:
    """Start a job on the planned slots, if both still are what the solver saw."""
    job = allowed_start(pool, view, start)
    if job is None:
        return
    terms = plan_terms(view, message, start)
    yield start_job(view, job, start.allocations, POLICY, terms, message.status)


def allowed_start(pool: Pool, view: View, start: PlannedStart) -> Job | None:
    """Return the job if it still waits for this attempt and its slots are free and unreserved."""
    job = pool.waiting.get(start.job_id)
    if job is None or job.attempt != start.attempt or job.not_before > view.now:
        return None
    with targets_reserved(pool):
        is_free = pool.board.are_free(map(slot_of, start.allocations))
    return job if is_free else None


def is_attempt(view: View, wait: PlannedWait) -> bool:
    """Return whether the job still waits for the attempt that the solver saw."""
    job = view.waiting.get(wait.job_id)
    return job is not None and job.attempt == wait.attempt


def plan_terms(view: View, message: PlanReady, start: PlannedStart) -> dict[str, float]:
    """Return the job's own terms, then those of the plan that it is part of."""
    terms = {
        **start.terms,
        "waiting": len(view.waiting),
        **rank_terms(view),
        "objective": message.objective,
        "greedy_objective": message.greedy,
        "bound": message.bound,
        "solve_ms": message.solve_ms,
        **{f"plan_{name}": value for name, value in message.terms.items()},
    }
    return {name: float(value) for name, value in terms.items()}

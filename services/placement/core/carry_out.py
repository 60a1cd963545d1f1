"""Carries out the plan of a round: its decisions, in the order in which they are recorded."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.lifecycle import gangs
from services.placement.core.migration.migrate import migrate_job
from services.placement.core.pool.allocations import allocations_of
from services.placement.core.pool.job import Job
from services.placement.core.pool.loss_budget import MILLI, SHARES
from services.placement.core.pool.shape import GPU
from services.placement.core.pool.state import Pool
from services.placement.core.resize.resize import resize_job
from services.placement.core.round.greedy import GREEDY
from services.placement.core.round.plan import Assignment, Eviction, Plan
from services.placement.core.round.reasons import hold_job
from services.placement.core.round.view import View
from shared.contracts.construct import construct
from shared.contracts.placement import PreemptionPaused, RoundEnded, SolverStatus
from shared.ledger.decider import Decision


def carry_out(pool: Pool, view: View, proposal: Plan, solver: SolverStatus) -> Iterator[Decision]:
    """End the round with this plan of it; `solver`: why the solver did not plan it."""
    tried_to_grow = not pool.waiting
    for eviction in proposal.evictions:
        yield preempt_victim(eviction, view.now)
    for assignment in proposal.assignments:
        yield start_job(view, proposal, assignment, solver)
    for hold in proposal.holds:
        yield hold_job(hold)
    for migration in proposal.migrations:
        yield migrate_job(pool, migration, view.now, "")
    for resize in proposal.resizes:
        yield resize_job(pool, resize, view.now)
    if view.rank_rules and (view.rank_rules.is_paused or proposal.stopped_jobs()):
        yield from report_pause(pool, view)
    if pool.waiting or pool.open_round or pool.can_grow():
        yield Decision(
            construct(
                RoundEnded,
                pool=pool.name,
                waiting=len(pool.waiting),
                unfinished=proposal.unfinished or (not tried_to_grow and pool.can_grow()),
                again_at=proposal.again_at,
            )
        )


def preempt_victim(eviction: Eviction, now: int) -> Decision:
    """Return the preemption; its terms are both scores if they decided, and its run time."""
    victim, by = eviction.job, eviction.by
    terms: dict[str, float] = {"ran_ms": float(victim.ran_ms(now)), **eviction.costs}
    if eviction.score is not None:
        terms["score"] = eviction.score
    if eviction.by_score is not None:
        terms["by_score"] = eviction.by_score
    reason = preemption_reason(victim, by)
    return gangs.preempt_job(victim, reason, by.job_id, eviction.lost_work_s, by.cause, terms)


def report_pause(pool: Pool, view: View) -> Iterator[Decision]:
    """Yield one event where the stops so far have spent the loss budget."""
    rules = view.rank_rules
    if rules is None or rules.protection.progress is None or pool.loss.is_reported:
        return
    loss = pool.loss_at(view.now)
    if loss.spent <= 0 or not loss.is_paused:
        return
    to_gpu_s = pool.time_scale / (SHARES * MILLI * 1000)
    yield Decision(
        construct(
            PreemptionPaused,
            pool=pool.name,
            spent_gpu_s=loss.spent * to_gpu_s,
            budget_gpu_s=loss.budget * to_gpu_s,
            until=loss.opens_at_ms,
        )
    )


def preemption_reason(victim: Job, by: Job) -> gangs.Preemption:
    if victim.tier == by.tier:
        return "outranked"
    return "spot_reclaimed" if victim.spec.spot else "higher_class"


def start_job(view: View, proposal: Plan, assignment: Assignment, solver: SolverStatus) -> Decision:
    """Return the start of a job that the round places."""
    score = view.scores.get(assignment.job.job_id)
    terms = placement_terms(view, proposal, assignment)
    return gangs.place_job(
        assignment.job,
        allocations_of(assignment.slots),
        view.now,
        policy=f"{view.order}+{GREEDY.name}",
        terms=terms,
        score=score,
        model_sha256=model_of(view, score),
        solver=solver,
    )


def model_of(view: View, score: float | None) -> str:
    """Return the sha256 of the learned policy; empty where it did not rank the job."""
    return "" if score is None else view.model


def placement_terms(view: View, proposal: Plan, assignment: Assignment) -> dict[str, float]:
    """Return the figures that explain why the job starts here and now."""
    slots = assignment.slots
    terms: dict[str, float] = {
        "position": float(assignment.position),
        "waiting": float(proposal.waiting),
        "nodes": float(len({slot.node_id for slot in slots})),
        "node_gpus_left": float(assignment.gpus_left),
    }
    if slots[0].milli < GPU:
        terms["share_milli"] = float(slots[0].milli)
    if view.board.slow:
        health = min(view.board.health(slot.node_id) for slot in slots)
        if health < 1:
            terms["health"] = health
    return {**terms, **rank_terms(view)}


def rank_terms(view: View) -> dict[str, float]:
    """Return the age of the last ranks, and whether they were too old to be used."""
    if not view.ranks_at:
        return {}
    return {"rank_age_s": view.ranks_age_s, "rank_stale": float(view.ranks_stale)}

"""A waiting job starts where a planner placed it, with the figures that explain why."""

from __future__ import annotations

from services.placement.core.lifecycle import gangs
from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import GPU
from services.placement.core.round.plan import Assignment, Plan
from services.placement.core.round.view import View
from shared.contracts.placement import Allocation, SolverStatus
from shared.ledger.decider import Decision


def start_job(
    view: View,
    job: Job,
    allocations: tuple[Allocation, ...],
    planner: str,
    terms: dict[str, float],
    solver: SolverStatus,
) -> Decision:
    """Return the start; its score, and the model that gave it, are those of the view."""
    score = view.scores.get(job.job_id)
    return gangs.place_job(
        job,
        allocations,
        view.now,
        policy=f"{view.order}+{planner}",
        terms=terms,
        score=score,
        model_sha256="" if score is None else view.model,
        solver=solver,
    )


def placement_terms(view: View, proposal: Plan, assignment: Assignment) -> dict[str, float]:
    """Return the figures that explain why greedy starts the job here and now."""
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
        health = min(view.board.health(slot.node_id, slot.gpus) for slot in slots)
        if health < 1:
            terms["health"] = health
    return {**terms, **assignment.terms, **rank_terms(view)}


def rank_terms(view: View) -> dict[str, float]:
    """Return the age of the last ranks, and whether they were too old to be used."""
    if not view.ranks_at:
        return {}
    return {"rank_age_s": view.ranks_age_s, "rank_stale": float(view.ranks_stale)}

"""A running job stops so that another starts."""

from __future__ import annotations

from services.placement.core.lifecycle import gangs
from services.placement.core.pool.job import Job
from services.placement.core.round.plan import Eviction
from services.placement.core.round.view import View
from shared.ledger.decider import Decision


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


def stop_unallotted(view: View, job: Job) -> Decision:
    """Return the stop of a job to which the pool's scheduler allots no GPUs, or others."""
    terms = {"ran_ms": float(job.ran_ms(view.now)), "scheduled": 1.0}
    return gangs.preempt_job(job, "outranked", "", view.lost_work_s(job), "", terms)


def preemption_reason(victim: Job, by: Job) -> gangs.Preemption:
    if victim.tier == by.tier:
        return "outranked"
    return "spot_reclaimed" if victim.spec.spot else "higher_class"

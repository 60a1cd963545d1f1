"""Decisions about jobs that are slow as a whole or recovered, and about the pace of ended ones."""

from __future__ import annotations

from collections.abc import Iterator

from services.failslow.core.plans.planning import end_plans, makes_plans
from services.failslow.core.state import JOB, FailSlowState, GangState
from services.failslow.core.suspicion.clearing import clear
from services.failslow.core.suspicion.evidence import is_new
from shared.contracts.faults import FaultSuspected
from shared.contracts.paces import JobPaceChanged, JobPaceSettled, PaceLearned
from shared.ledger.decider import Decision, Input


def note_pace(
    state: FailSlowState, item: Input, change: JobPaceChanged, now: int
) -> Iterator[Decision]:
    """Open a fault of a job that became slow, or clear it; an earlier attempt has no effect."""
    gang = state.gangs.get(change.job_id)
    if gang is None or gang.attempt != change.attempt:
        return
    is_large = state.strictness.accepts_job(change.slowdown, change.score)
    if change.is_slow and is_new(gang, JOB) and is_large:
        yield Decision(slow_job(gang, change), item.id, gang.traceparent)
    elif not change.is_slow and JOB in gang.open:
        yield clear(state, state.faults[gang.open[JOB]], "recovered", now, item.id)
        if not gang.open:
            yield from end_plans(state, change.job_id, "recovered", item.id)


def learn(state: FailSlowState, item: Input, settled: JobPaceSettled) -> Iterator[Decision]:
    """Note the pace of an attempt that has ended."""
    # Earlier releases cannot read it; a pool that they configured makes no plans.
    if state.pool is None or not makes_plans(state):
        return
    event = PaceLearned(
        series=settled.series,
        job_id=settled.job_id,
        attempt=settled.attempt,
        pace_s=settled.pace_s,
        has_work=settled.has_work,
    )
    yield Decision(event, item.id)


def slow_job(gang: GangState, change: JobPaceChanged) -> FaultSuspected:
    return FaultSuspected(
        fault_id=f"{change.job_id}/{gang.attempt}/job/{gang.counts.get(JOB, 0) + 1}",
        job_id=change.job_id,
        tenant=gang.tenant,
        node_id="",
        allocation_id="",
        slowdown=max(change.slowdown, 1.0),
        iteration_s=change.iteration_s,
        peers_s=change.usual_s,
        score=change.score,
        reports=change.iterations,
        kind="job",
        since_step=change.since_step,
        confidence=change.confidence,
        work=change.work,
        earlier_runs=change.earlier_runs,
        cause=change.cause,
        cause_confidence=change.cause_confidence,
        cause_evidence=change.cause_evidence,
        pipeline=change.pipeline,
    )

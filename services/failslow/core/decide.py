"""Fail-slow's decider: suspects and clears workers, and answers operators' commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from services.failslow.core.answers import answer
from services.failslow.core.diagnosis.replicas import replicas_of
from services.failslow.core.diagnosis.verdict import Diagnosis
from services.failslow.core.evolve import evolve
from services.failslow.core.fleet import FleetChanges
from services.failslow.core.gangs import GangChanges
from services.failslow.core.measures.peers import SlowWorker, Thresholds
from services.failslow.core.node_problems import note_gpu_problems
from services.failslow.core.plans.adapting import plan_adaptations
from services.failslow.core.plans.automation import settle_plans, turn_due_s
from services.failslow.core.plans.expectations import state_expectations
from services.failslow.core.plans.measuring import plan_validations
from services.failslow.core.plans.migrations import follow_migrations
from services.failslow.core.plans.planning import (
    due_at,
    end_plans,
    end_turned_down,
    ledger_ms,
    makes_plans,
    plan_due,
    score_node,
)
from services.failslow.core.plans.retries import next_try_s, retry_plans
from services.failslow.core.state import FailSlowState, GangState
from services.failslow.core.suspicion.clearing import clear
from services.failslow.core.suspicion.comparison import Rows, cause_of, gpu_of, judge_gang
from services.failslow.core.suspicion.evidence import is_new
from services.failslow.core.suspicion.pace_changes import learn, note_pace
from services.failslow.core.suspicion.validations import note_validation
from shared.contracts.base import Command
from shared.contracts.faults import FaultSuspected
from shared.contracts.paces import JobPaceChanged, JobPaceSettled
from shared.contracts.parallelism import Replicas
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import WorkersIterated
from shared.contracts.topics import CONSUMED_EVENTS
from shared.contracts.validation import ValidationMeasured
from shared.ledger.clock_steps import note_steps
from shared.ledger.decider import Decision, Fact, Input, Undecodable, WakeStart, as_unit
from shared.ledger.restate import restate_settings


class FailSlow:
    """Decides for one pool; see `Decider`."""

    ledger = "failslow"
    consumed_events = CONSUMED_EVENTS["failslow"]

    def __init__(self, limits: Thresholds | None = None) -> None:
        self.limits = limits or Thresholds()

    def initial(self, partition: int) -> FailSlowState:
        return FailSlowState(partition)

    def decide(self, state: FailSlowState, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        yield from note_steps(inputs, state.pool, self.ledger, now)
        yield from note_placement(state, inputs, now)
        for item in inputs:
            match item.message:
                case Command() as command if state.answered.is_due(item, self.ledger):
                    yield from answer(state, item, command, now)
                case WorkersIterated() as iterated:
                    yield from self._compare(state, item, iterated, now)
                case JobPaceChanged() as change:
                    yield from note_pace(state, item, change, now)
                case JobPaceSettled() as settled:
                    yield from learn(state, item, settled)
                case ValidationMeasured() as measured:
                    yield from note_validation(state, item, measured, now)
                case PoolConfigured() if item.source == "access":
                    yield from restate_settings([item], PoolConfigured, state.partition, state.pool)
                case Undecodable() as bad:
                    yield item.decision(bad.rejection())
        yield from as_unit(plan_due(state, now), WakeStart)
        yield from as_unit(plan_adaptations(state, now), WakeStart)
        yield from as_unit(plan_validations(state, now), WakeStart)
        yield from as_unit(retry_plans(state, inputs, now), WakeStart)
        yield from as_unit(settle_plans(state, state.cluster_s(now)), WakeStart)
        yield from as_unit(state_expectations(state, now), WakeStart)

    def evolve(self, state: FailSlowState, fact: Fact) -> None:
        evolve(state, fact)

    def next_wake(self, state: FailSlowState) -> int | None:
        if next(settle_plans(state, -inf), None) is not None:
            return 0
        times_s = (next_try_s(state), turn_due_s(state))
        times = (due_at(state), *(ledger_ms(state, at_s) for at_s in times_s if at_s is not None))
        return min((at for at in times if at is not None), default=None)

    def _compare(
        self, state: FailSlowState, item: Input, iterated: WorkersIterated, now: int
    ) -> Iterator[Decision]:
        limits = state.strictness.thresholds(self.limits)
        for job_id in dict.fromkeys(worker.job_id for worker in iterated.times):
            gang = state.gangs.get(job_id)
            if gang is None:
                continue
            own = tuple(worker for worker in iterated.times if worker.job_id == job_id)
            rows = Rows.of(gang, own)
            verdict = judge_gang(gang, rows, limits, iterated.noise)
            for rank, slow in verdict.slow.items():
                if is_new(gang, rank):
                    cause = cause_of(rows, verdict, rank, limits.reports, gang.gpus)
                    node_id = gang.workers[rank].node_id
                    known = state.gpu_problems.sentences(node_id)
                    notes = (*known, *iterated.notes.get(node_id, ()))
                    replicas = replicas_of(rows.by_process.values(), limits.reports)
                    gpu = gpu_of(gang, rows, rank, cause)
                    event = suspicion_of(job_id, gang, rank, slow, cause, notes, replicas, gpu)
                    yield Decision(event, item.id, gang.traceparent)
                    yield from score_node(state, event.node_id, event.fault_id, now)
            for rank in verdict.healthy:
                if rank in gang.open:
                    fault = state.faults[gang.open[rank]]
                    yield clear(state, fault, "recovered", now, item.id)
                    yield from end_plans(state, job_id, "recovered", item.id)


def note_placement(state: FailSlowState, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
    """Note the nodes, the migrations and the gangs of the inputs that come from placement."""
    placement = [item for item in inputs if item.source == "placement"]
    changes, nodes = GangChanges(), FleetChanges()
    for item in placement:
        changes.add(state, item)
        nodes.add(state.fleet, item)
    # Earlier releases cannot read it; a pool that they configured makes no plans, and needs none.
    is_planned = state.pool is not None and makes_plans(state)
    if is_planned and (noted := nodes.to_event(state.name, state.fleet)) is not None:
        yield Decision(noted)
    for item in placement:
        yield from note_gpu_problems(state, item, now)
        yield from follow_migrations(state, item, now)
        yield from end_turned_down(state, item)
    yield from end_watch(state, changes, now)


def end_watch(state: FailSlowState, changes: GangChanges, now: int) -> Iterator[Decision]:
    """Clear the faults of gangs that ended, then note which gangs are watched."""
    for job_id in changes.ended:
        for fault_id in list(state.gangs[job_id].open.values()):
            yield clear(state, state.faults[fault_id], "job_ended", now)
        yield from end_plans(state, job_id, "job_ended")
    if changes:
        yield Decision(changes.to_event(state))


def suspicion_of(
    job_id: str,
    gang: GangState,
    rank: int,
    slow: SlowWorker,
    cause: Diagnosis,
    notes: Sequence[str] = (),
    replicas: Replicas | None = None,
    gpu: int | None = None,
) -> FaultSuspected:
    worker = gang.workers[rank]
    return FaultSuspected(
        fault_id=f"{job_id}/{gang.attempt}/{rank}/{gang.counts.get(rank, 0) + 1}",
        job_id=job_id,
        tenant=gang.tenant,
        node_id=worker.node_id,
        allocation_id=worker.allocation_id,
        slowdown=slow.slowdown,
        iteration_s=slow.iteration_s,
        peers_s=slow.peers_s,
        score=slow.score,
        reports=slow.reports,
        cause=cause.cause,
        part=cause.suspects[0].kind if cause.suspects else "",
        gpu=gpu,
        cause_confidence=cause.confidence,
        cause_evidence=(*cause.evidence, *notes),
        replicas=replicas,
    )

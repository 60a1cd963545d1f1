"""Folds each event of fail-slow's own ledger into the state."""

from __future__ import annotations

from services.failslow.core.fold_mitigation import (
    account_migration,
    apply_plan,
    begin_migration,
    end_fault,
    end_plan,
    follow_fault,
    measure_migration,
    note_expected,
    note_gpus,
    note_plan,
    note_unclear,
    note_validated,
)
from services.failslow.core.state import JOB, FailSlowState, GangState, SlowPace, TrackedFault
from shared.contracts.base import Event
from shared.contracts.breaker import BreakerChanged, NodesNoted
from shared.contracts.clocks import ClockStepped
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.faults import (
    FaultCleared,
    FaultDismissed,
    FaultSuspected,
    GangsNoted,
    ThresholdsAdjusted,
)
from shared.contracts.mitigation import (
    MitigationApplied,
    MitigationCleared,
    MitigationExpected,
    MitigationPlanned,
    NodeHealthScored,
)
from shared.contracts.mitigation_account import (
    MitigationAccounted,
    MitigationCarriedOut,
    MitigationMeasured,
)
from shared.contracts.node_problems import NodeGpusNoted
from shared.contracts.paces import PaceLearned
from shared.contracts.pools import PoolConfigured
from shared.contracts.validation import NodesValidated
from shared.ledger.answers import fold_answer
from shared.ledger.decider import Fact
from shared.ledger.folds import INPUT_FOLDS, EventFold, folding, ignore, note_clock_step


def apply_gangs(state: FailSlowState, event: GangsNoted, fact: Fact) -> None:
    """Apply the ends first: a job that was placed anew in the same batch stays watched."""
    now_s = state.cluster_s(fact.at)
    for job_id in event.ended:
        state.gangs.pop(job_id, None)
        state.mitigation.end_gang(job_id, now_s)
    for gang in event.started:
        state.mitigation.deficits.resume(gang.job_id, now_s)
        workers = {worker.rank: worker for worker in gang.workers}
        state.gangs[gang.job_id] = GangState(
            gang.tenant,
            gang.attempt,
            workers,
            gang.traceparent,
            gpus=gang.gpus,
            validates=gang.validates,
            preemptible=gang.preemptible,
        )
        state.fleet.nodes |= dict.fromkeys(worker.node_id for worker in gang.workers)


def open_fault(state: FailSlowState, event: FaultSuspected, fact: Fact) -> None:
    _, attempt, rank, count = event.fault_id.split("/")
    number = JOB if event.kind == "job" else int(rank)
    fault = TrackedFault(
        event.fault_id, event.job_id, event.tenant, event.node_id, int(attempt), number
    )
    fault.traceparent = fact.traceparent
    state.faults[event.fault_id] = fault
    gang = state.gang_of(fault)
    if gang is not None:
        gang.open[fault.rank] = fault.fault_id
        gang.counts[fault.rank] = int(count)
        if event.kind == "job":
            gang.pace = SlowPace(event.peers_s, event.slowdown, event.work)
            note_unclear(state, gang, event, fact)
        follow_fault(state, event, fact)


def clear_fault(state: FailSlowState, event: FaultCleared, fact: Fact) -> None:
    end_fault(state, event, fact)
    close_in_gang(state, event.fault_id, mute=False)
    state.close(event.fault_id, "cleared")


def dismiss_fault(state: FailSlowState, event: FaultDismissed, fact: Fact) -> None:
    end_fault(state, event, fact)
    close_in_gang(state, event.fault_id, mute=True)
    state.close(event.fault_id, "false_alarm" if event.false_alarm else "dismissed")


def close_in_gang(state: FailSlowState, fault_id: str, *, mute: bool) -> None:
    fault = state.faults.get(fault_id)
    gang = state.gang_of(fault) if fault else None
    if fault is None or gang is None:
        return
    if gang.open.get(fault.rank) == fault_id:
        del gang.open[fault.rank]
        if fault.rank == JOB:
            gang.pace = gang.unclear = None
    if gang.unclear is not None:
        gang.unclear.is_stated = False
    if mute:
        gang.muted.add(fault.rank)


def note_nodes(state: FailSlowState, event: NodesNoted, fact: Fact) -> None:
    state.fleet.note(event)


def adjust_thresholds(state: FailSlowState, event: ThresholdsAdjusted, fact: Fact) -> None:
    state.strictness.note(event)


def change_breaker(state: FailSlowState, event: BreakerChanged, fact: Fact) -> None:
    state.fleet.is_breaker_open = event.is_open


def learn_pace(state: FailSlowState, event: PaceLearned, fact: Fact) -> None:
    state.paces.note(event)


def configure(state: FailSlowState, event: PoolConfigured, fact: Fact) -> None:
    state.pool = event
    state.mitigation.assume(event.migration_cost_s)


FOLDS: dict[type[Event], EventFold[FailSlowState]] = {
    GangsNoted: apply_gangs,
    FaultSuspected: open_fault,
    FaultCleared: clear_fault,
    FaultDismissed: dismiss_fault,
    MitigationPlanned: note_plan,
    MitigationExpected: note_expected,
    MitigationApplied: apply_plan,
    MitigationCleared: end_plan,
    MitigationCarriedOut: begin_migration,
    MitigationMeasured: measure_migration,
    MitigationAccounted: account_migration,
    NodeHealthScored: ignore,
    NodesNoted: note_nodes,
    NodeGpusNoted: note_gpus,
    BreakerChanged: change_breaker,
    ThresholdsAdjusted: adjust_thresholds,
    PaceLearned: learn_pace,
    NodesValidated: note_validated,
    CommandAccepted: fold_answer,
    CommandRefused: fold_answer,
    PoolConfigured: configure,
    ClockStepped: note_clock_step,
    **INPUT_FOLDS,
}
"""Every event type of the failslow ledger, and its fold."""

evolve = folding("failslow", FOLDS)

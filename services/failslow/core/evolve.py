"""Folds each event of fail-slow's own ledger into the state."""

from __future__ import annotations

from services.failslow.core.state import FailSlowState, GangState, TrackedFault
from shared.contracts.access import PoolConfigured
from shared.contracts.faults import FaultCleared, FaultDismissed, FaultSuspected, GangsNoted
from shared.contracts.jobs import CommandAccepted, CommandRefused
from shared.contracts.rejected import InputQuarantined, InputRejected
from shared.ledger.decider import Fact


def evolve(state: FailSlowState, fact: Fact) -> None:
    """Fold one event; raises on a type that fail-slow does not write."""
    match fact.event:
        case GangsNoted() as event:
            apply_gangs(state, event)
        case FaultSuspected() as event:
            open_fault(state, event, fact.traceparent)
        case FaultCleared(fault_id=fault_id):
            close_in_gang(state, fault_id, mute=False)
            state.close(fault_id, "cleared")
        case FaultDismissed(fault_id=fault_id, false_alarm=false_alarm):
            close_in_gang(state, fault_id, mute=True)
            state.close(fault_id, "false_alarm" if false_alarm else "dismissed")
        case CommandAccepted() | CommandRefused() as event:
            state.answered.apply(event)
        case PoolConfigured() as pool:
            state.pool = pool
        case InputRejected() | InputQuarantined():
            pass
        case event:
            raise TypeError(f"event of an unknown type in the failslow ledger: {event.TYPE}")


def apply_gangs(state: FailSlowState, event: GangsNoted) -> None:
    """Apply the ends first: a job that was placed anew in the same batch stays watched."""
    for job_id in event.ended:
        state.gangs.pop(job_id, None)
    for gang in event.started:
        workers = {worker.rank: worker for worker in gang.workers}
        state.gangs[gang.job_id] = GangState(gang.tenant, gang.attempt, workers, gang.traceparent)


def open_fault(state: FailSlowState, event: FaultSuspected, traceparent: str) -> None:
    _, attempt, rank, count = event.fault_id.split("/")
    fault = TrackedFault(
        event.fault_id, event.job_id, event.tenant, event.node_id, int(attempt), int(rank)
    )
    fault.traceparent = traceparent
    state.faults[event.fault_id] = fault
    gang = state.gang_of(fault)
    if gang is not None:
        gang.open[fault.rank] = fault.fault_id
        gang.counts[fault.rank] = int(count)


def close_in_gang(state: FailSlowState, fault_id: str, *, mute: bool) -> None:
    fault = state.faults.get(fault_id)
    gang = state.gang_of(fault) if fault else None
    if fault is None or gang is None:
        return
    if gang.open.get(fault.rank) == fault_id:
        del gang.open[fault.rank]
    if mute:
        gang.muted.add(fault.rank)

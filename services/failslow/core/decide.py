"""Fail-slow's decider: it suspects and clears workers, and answers the operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.failslow.core.answers import answer
from services.failslow.core.evidence import is_new, windows_of
from services.failslow.core.gangs import GangChanges, apply, noted
from services.failslow.core.peers import SlowWorker, Thresholds, judge
from services.failslow.core.state import FailSlowState, GangState, TrackedFault
from shared.contracts.access import PoolConfigured
from shared.contracts.base import Command
from shared.contracts.faults import FaultCleared, FaultDismissed, FaultSuspected, GangsNoted
from shared.contracts.jobs import CommandAccepted, CommandRefused
from shared.contracts.reports import IterationTimes, WorkersIterated
from shared.contracts.topics import CONSUMED_EVENTS
from shared.ledger.decider import Decision, Fact, Input, Undecodable


class FailSlow:
    """One pool's watch; see `Decider`."""

    ledger = "failslow"
    consumed_events = CONSUMED_EVENTS["failslow"]

    def __init__(self, limits: Thresholds | None = None) -> None:
        self.limits = limits or Thresholds()

    def initial(self, partition: int) -> FailSlowState:
        return FailSlowState(partition)

    def decide(self, state: FailSlowState, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        changes = GangChanges()
        for item in inputs:
            if item.source == "placement":
                changes.note(state, item)
        yield from end_watch(state, changes)
        for item in inputs:
            match item.message:
                case Command() as command if state.answered.is_due(item, self.ledger):
                    yield from answer(state, item, command)
                case WorkersIterated(times=times):
                    yield from self._compare(state, item, times)
                case PoolConfigured() as pool if item.source == "access":
                    if pool.partition == state.partition and pool != state.pool:
                        yield item.decision(pool)
                case Undecodable() as bad:
                    yield item.decision(bad.rejection())

    def evolve(self, state: FailSlowState, fact: Fact) -> None:
        match fact.event:
            case GangsNoted() as event:
                apply(state, event)
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

    def next_wake(self, state: FailSlowState) -> int | None:
        return None

    def _compare(
        self, state: FailSlowState, item: Input, times: tuple[IterationTimes, ...]
    ) -> Iterator[Decision]:
        for job_id in dict.fromkeys(each.job_id for each in times):
            gang = state.gangs.get(job_id)
            if gang is None:
                continue
            own = tuple(each for each in times if each.job_id == job_id)
            verdict = judge(windows_of(gang, own), self.limits)
            for rank, slow in verdict.slow.items():
                if is_new(gang, rank):
                    event = suspected(job_id, gang, rank, slow)
                    yield Decision(event, item.id, gang.traceparent)
            for rank in verdict.healthy:
                if rank in gang.open:
                    yield ended(state.faults[gang.open[rank]], "recovered", item.id)


def end_watch(state: FailSlowState, changes: GangChanges) -> Iterator[Decision]:
    """Faults end before the watch of their gang does."""
    for job_id in changes.ended:
        for fault_id in list(state.gangs[job_id].open.values()):
            yield ended(state.faults[fault_id], "job_ended")
    if changes:
        yield Decision(noted(state, changes))


def suspected(job_id: str, gang: GangState, rank: int, slow: SlowWorker) -> FaultSuspected:
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
    )


def ended(fault: TrackedFault, reason: str, cause: str = "") -> Decision:
    """The end of a suspicion follows from the suspicion."""
    return Decision(cleared(fault, reason), cause, fault.traceparent)


def cleared(fault: TrackedFault, reason: str) -> FaultCleared:
    return FaultCleared(
        fault_id=fault.fault_id,
        job_id=fault.job_id,
        tenant=fault.tenant,
        node_id=fault.node_id,
        reason=reason,
    )


def open_fault(state: FailSlowState, event: FaultSuspected, traceparent: str) -> None:
    _, attempt, rank, count = event.fault_id.split("/")
    fault = TrackedFault(
        event.fault_id, event.job_id, event.tenant, event.node_id, int(attempt), int(rank)
    )
    fault.traceparent = traceparent
    state.faults[event.fault_id] = fault
    gang = gang_of(state, fault)
    if gang is not None:
        gang.open[fault.rank] = fault.fault_id
        gang.counts[fault.rank] = int(count)


def close_in_gang(state: FailSlowState, fault_id: str, *, mute: bool) -> None:
    fault = state.faults.get(fault_id)
    gang = gang_of(state, fault) if fault else None
    if fault is None or gang is None:
        return
    if gang.open.get(fault.rank) == fault_id:
        del gang.open[fault.rank]
    if mute:
        gang.muted.add(fault.rank)


def gang_of(state: FailSlowState, fault: TrackedFault) -> GangState | None:
    """None once the attempt that suffered is over."""
    gang = state.gangs.get(fault.job_id)
    return gang if gang is not None and gang.attempt == fault.attempt else None

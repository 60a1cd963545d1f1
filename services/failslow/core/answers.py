"""Answers to operators' commands about faults."""

from __future__ import annotations

from collections.abc import Iterator

from services.failslow.core.plans.planning import approve, end_plans, score_node
from services.failslow.core.state import FailSlowState, TrackedFault
from services.failslow.core.suspicion.clearing import lost_gpu_s
from shared.contracts.base import Command
from shared.contracts.faults import DismissFault, FaultDismissed, MarkFalseAlarm
from shared.contracts.mitigation import ApproveMitigation
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input


def answer(state: FailSlowState, item: Input, command: Command, now: int) -> Iterator[Decision]:
    """Answer a command that is due."""
    match command:
        case DismissFault(fault_id=fault_id, reason=reason):
            yield from close(state, item, fault_id, reason, now, false_alarm=False)
        case MarkFalseAlarm(fault_id=fault_id, reason=reason):
            yield from close(state, item, fault_id, reason, now, false_alarm=True)
        case ApproveMitigation():
            yield from approve(state, item, command)


def close(
    state: FailSlowState, item: Input, fault_id: str, reason: str, now: int, *, false_alarm: bool
) -> Iterator[Decision]:
    """Accept and dismiss the fault, or refuse with a reason code."""
    fault = state.faults.get(fault_id)
    refusal = refusal_of(state, fault, false_alarm)
    if refusal or fault is None:
        yield refuse_command(item, fault_id, refusal, f"fault_id: {fault_id!r}")
        return
    yield accept_command(item, fault_id)
    yield item.decision(dismissal_of(state, fault, reason, false_alarm, now))
    if false_alarm:
        yield from score_node(state, fault.node_id, fault_id, now)
        adjusted = state.strictness.adjusted(state.name, fault.kind, false_alarm=True)
        yield item.decision(adjusted)
    yield from end_plans(state, fault.job_id, "dismissed", item.id)


def refusal_of(state: FailSlowState, fault: TrackedFault | None, false_alarm: bool) -> str:
    """Return the reason code of a refusal, "" for none.

    A closed fault may still turn out to have been a false alarm, once.
    """
    if state.pool is None:
        return "unknown_pool"
    if fault is None:
        return "unknown_fault"
    if fault.status == "false_alarm" or (fault.status != "open" and not false_alarm):
        return "already_closed"
    return ""


def dismissal_of(
    state: FailSlowState, fault: TrackedFault, reason: str, false_alarm: bool, now: int
) -> FaultDismissed:
    return FaultDismissed(
        fault_id=fault.fault_id,
        job_id=fault.job_id,
        tenant=fault.tenant,
        node_id=fault.node_id,
        false_alarm=false_alarm,
        reason=reason,
        lost_gpu_s=lost_gpu_s(state, fault, now),
    )

"""The end of a suspicion."""

from __future__ import annotations

from services.failslow.core.state import FailSlowState, TrackedFault
from shared.contracts.faults import FaultCleared
from shared.ledger.decider import Decision


def clear(
    state: FailSlowState, fault: TrackedFault, reason: str, now: int, cause: str = ""
) -> Decision:
    """Return the end of a suspicion, in the trace of the suspicion."""
    event = FaultCleared(
        fault_id=fault.fault_id,
        job_id=fault.job_id,
        tenant=fault.tenant,
        node_id=fault.node_id,
        reason=reason,
        lost_gpu_s=lost_gpu_s(state, fault, now),
    )
    return Decision(event, cause, fault.traceparent)


def lost_gpu_s(state: FailSlowState, fault: TrackedFault, now: int) -> float:
    """Return what the faults of the gang have cost, where this is the last open one of them."""
    gang = state.gang_of(fault)
    if gang is None:
        return 0.0
    lost_s = state.mitigation.lost_by_s(fault.job_id, fault.fault_id, state.cluster_s(now))
    return lost_s * gang.gpus

"""The end of a suspicion."""

from __future__ import annotations

from services.failslow.core.state import TrackedFault
from shared.contracts.faults import FaultCleared
from shared.ledger.decider import Decision


def clear(fault: TrackedFault, reason: str, cause: str = "") -> Decision:
    """Return the end of a suspicion, in the trace of the suspicion."""
    event = FaultCleared(
        fault_id=fault.fault_id,
        job_id=fault.job_id,
        tenant=fault.tenant,
        node_id=fault.node_id,
        reason=reason,
    )
    return Decision(event, cause, fault.traceparent)

from __future__ import annotations

from services.failslow.core.state import FailSlowState, TrackedFault
from services.failslow.core.suspicion.clearing import clear
from shared.contracts.faults import FaultCleared


def test_a_fault_is_cleared_in_the_trace_of_its_suspicion() -> None:
    fault = TrackedFault("j1/1/2/1", "j1", "acme", "n2", 1, 2, traceparent="00-a-b-01")
    decision = clear(FailSlowState(0), fault, "recovered", 0, "cause")
    assert isinstance(decision.event, FaultCleared)
    assert (decision.event.fault_id, decision.event.node_id) == ("j1/1/2/1", "n2")
    assert decision.traceparent == "00-a-b-01"

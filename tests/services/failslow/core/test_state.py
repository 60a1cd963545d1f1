"""Faults of attempts that are over, and the closed ones that are kept."""

from __future__ import annotations

import pytest

from services.failslow.core import state as state_module
from services.failslow.core.state import FailSlowState, GangState, TrackedFault


def a_fault(fault_id: str = "f", attempt: int = 1) -> TrackedFault:
    return TrackedFault(fault_id, "j1", "acme", "n2", attempt, rank=2)


def test_a_fault_has_a_gang_while_its_attempt_is_watched() -> None:
    state = FailSlowState(0)
    assert state.gang_of(a_fault()) is None
    state.gangs["j1"] = GangState("acme", attempt=2, workers={})
    assert state.gang_of(a_fault(attempt=1)) is None
    assert state.gang_of(a_fault(attempt=2)) is state.gangs["j1"]


def test_the_oldest_closed_fault_is_dropped_and_open_ones_never(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state_module, "CLOSED_KEPT", 2)
    state = FailSlowState(0)
    for name in ("open", "a", "b", "c"):
        state.faults[name] = a_fault(name)
    for name in ("a", "b", "c"):
        state.close(name, "cleared")
    assert list(state.faults) == ["open", "b", "c"] and list(state.closed) == ["b", "c"]


def test_a_fault_that_is_closed_again_counts_once() -> None:
    state = FailSlowState(0)
    state.faults["f"] = a_fault()
    state.close("f", "cleared")
    state.close("f", "false_alarm")
    state.close("unknown", "cleared")
    assert state.faults["f"].status == "false_alarm" and list(state.closed) == ["f"]

"""A fault stops the worker for its share of each period, and never beyond its end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_agent.step.injection import FLAP_MS, LONGEST_MS, PERIOD_MS, InjectedFault, read_fault

FROM_MS = 1_000_000
DOCUMENT: dict[str, Any] = {
    "incarnation": "i",
    "fault": "slow",
    "factor": 2.5,
    "from_boot_ms": FROM_MS,
    "until_boot_ms": FROM_MS + 60_000,
}


def a_fault(fault: str = "slow", factor: float = 2.5, for_ms: int = 60_000) -> InjectedFault:
    return InjectedFault("i", fault, factor, FROM_MS, FROM_MS + for_ms)


def stopped_share(fault: InjectedFault, from_ms: int, ms: int) -> float:
    return sum(fault.stops_at(from_ms + passed) for passed in range(ms)) / ms


@pytest.mark.parametrize(("factor", "share"), [(2.0, 0.5), (2.5, 0.6), (5.0, 0.8), (100.0, 0.98)])
def test_a_slow_worker_runs_for_its_share(factor: float, share: float) -> None:
    assert stopped_share(a_fault(factor=factor), FROM_MS, 10 * PERIOD_MS) == share


def test_a_flapping_worker_is_slow_in_turns() -> None:
    fault = a_fault("flap")
    assert stopped_share(fault, FROM_MS, FLAP_MS) == 0.6
    assert stopped_share(fault, FROM_MS + FLAP_MS, FLAP_MS) == 0
    assert fault.next_ms(FROM_MS + FLAP_MS + 1) == FLAP_MS - 1


@pytest.mark.parametrize("fault", ["slow", "stop", "flap"])
def test_nothing_is_stopped_before_or_after(fault: str) -> None:
    injected = a_fault(fault)
    for now_ms in (FROM_MS - 1, FROM_MS + 60_000, FROM_MS + 10**9):
        assert not injected.stops_at(now_ms)
    assert injected.is_over(FROM_MS + 60_000)


@given(
    fault=st.sampled_from(["slow", "stop", "flap"]),
    factor=st.floats(1, 100),
    passed_ms=st.integers(0, 59_999),
)
def test_the_next_change_is_never_missed(fault: str, factor: float, passed_ms: int) -> None:
    injected, now_ms = a_fault(fault, factor), FROM_MS + passed_ms
    ms = injected.next_ms(now_ms)
    assert 1 <= ms <= 60_000
    assert {injected.stops_at(now_ms + passed) for passed in range(min(ms, 200))} == {
        injected.stops_at(now_ms)
    }


def test_a_fault_lasts_an_hour_at_most() -> None:
    assert not a_fault("stop", for_ms=10**12).stops_at(FROM_MS + LONGEST_MS)


def test_the_note_of_the_agent_is_read() -> None:
    fault = read_fault(DOCUMENT)
    assert fault is not None and (fault.fault, fault.factor, fault.incarnation) == (
        "slow",
        2.5,
        "i",
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"fault": "none"},
        {"fault": None},
        {"factor": 0.5},
        {"factor": 1e9},
        {"factor": float("nan")},
        {"factor": "fast"},
        {"until_boot_ms": None},
        {"until_boot_ms": float("inf")},
    ],
)
def test_a_note_that_cannot_be_read_is_no_fault(changes: dict[str, Any]) -> None:
    assert read_fault({**DOCUMENT, **changes}) is None
    assert read_fault({}) is None

"""Reason codes of refused commands."""

from __future__ import annotations

import pytest

from services.failslow.core.answers import refusal_of
from services.failslow.core.state import FailSlowState, Status, TrackedFault
from tests.services.failslow.gangs import POOL


@pytest.mark.parametrize(
    ("status", "false_alarm", "reason"),
    [
        ("open", False, ""),
        ("open", True, ""),
        ("cleared", False, "already_closed"),
        ("cleared", True, ""),
        ("dismissed", True, ""),
        ("false_alarm", True, "already_closed"),
    ],
)
def test_a_closed_fault_can_only_become_a_false_alarm(
    status: Status, false_alarm: bool, reason: str
) -> None:
    fault = TrackedFault("f", "j1", "acme", "n1", 1, 0, status=status)
    assert refusal_of(FailSlowState(0, pool=POOL), fault, false_alarm) == reason


def test_a_missing_pool_is_named_before_a_missing_fault() -> None:
    assert refusal_of(FailSlowState(0), None, false_alarm=False) == "unknown_pool"
    assert refusal_of(FailSlowState(0, pool=POOL), None, false_alarm=False) == "unknown_fault"

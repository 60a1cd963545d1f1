"""The earliest of an order, the lease and the walltime ends a worker."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_agent.step.ending import LeaseWatch
from berth_agent.step.limits import Limits
from berth_agent.step.spec import Spec
from tests.agent.step_bench import INCARNATION

STOPPED_MS, DEADLINE_MS = 1_000, 50_000


class SpecDouble(Spec):
    """The two values that limits depend on."""

    def __init__(self, grace_s: float, walltime_s: float | None = None) -> None:
        self.grace_s, self.walltime_s = grace_s, walltime_s


def a_lease(deadline_ms: int | None) -> LeaseWatch:
    lease = LeaseWatch(INCARNATION)
    lease.begin(INCARNATION, deadline_ms)
    return lease


def tombstone(grace_s: float) -> dict[str, Any]:
    return {"grace_s": grace_s, "reason": "stopped"}


@given(st.floats(0, 600))
def test_the_deadline_is_the_end_although_the_grace_of_a_stop_runs(grace_s: float) -> None:
    """[R25]"""
    limits, lease = Limits(SpecDouble(30.0), 0), a_lease(DEADLINE_MS)
    for now_ms in (STOPPED_MS, DEADLINE_MS - 1, DEADLINE_MS):
        limits.apply(tombstone(grace_s) if now_ms == STOPPED_MS else None, lease, now_ms)
    assert limits.ending.reason == "stopped"
    assert limits.ending.signal_at(DEADLINE_MS) == "kill"


@given(st.integers(0, DEADLINE_MS + 60_000))
def test_a_worker_that_was_asked_to_end_ends_although_the_lease_is_extended(later_ms: int) -> None:
    """Rule 7: SIGTERM came with the old deadline, and the end is not taken back."""
    limits, lease = Limits(SpecDouble(30.0), 0), a_lease(DEADLINE_MS)
    limits.apply(None, lease, DEADLINE_MS - 30_000)
    assert limits.ending.signal_at(DEADLINE_MS - 30_000) == "term"
    lease.renew(INCARNATION, 10 * DEADLINE_MS, DEADLINE_MS - 30_000, DEADLINE_MS - 29_000)
    limits.apply(None, lease, later_ms)
    assert limits.ending.signal_at(DEADLINE_MS) == "kill"


def test_without_a_deadline_the_order_alone_counts() -> None:
    limits, lease = Limits(SpecDouble(30.0), 0), a_lease(None)
    limits.apply(tombstone(300), lease, STOPPED_MS)
    assert limits.ending.signal_at(STOPPED_MS + 299_000) == "term"
    assert limits.ending.signal_at(STOPPED_MS + 300_000) == "kill"


def test_the_walltime_ends_a_worker_within_its_grace() -> None:
    limits, lease = Limits(SpecDouble(30.0, walltime_s=10.0), 0), a_lease(None)
    limits.apply(None, lease, 9_999)
    assert limits.ending.signal_at(9_999) == ""
    limits.apply(None, lease, 10_000)
    assert (limits.ending.reason, limits.ending.signal_at(10_000)) == ("walltime", "term")
    assert limits.ending.signal_at(40_000) == "kill"


@pytest.mark.parametrize(
    ("grace_s", "walltime_s", "due_ms", "left"),
    [
        (0.0, 4.0, 2_000, "2.0"),
        (0.0, 20.0, 15_000, "5.0"),
        (5.0, 100.0, 90_000, "10.0"),
        (5.0, 3600.0, 3_540_000, "60.0"),
        (300.0, 3600.0, 3_300_000, "300.0"),
        (300.0, 100.0, 50_000, "50.0"),
    ],
)
def test_the_warning_comes_the_grace_before_the_walltime(
    grace_s: float, walltime_s: float, due_ms: int, left: str
) -> None:
    limits, lease = Limits(SpecDouble(grace_s, walltime_s), 0), a_lease(None)
    assert limits.warning(due_ms - 1) == ""
    assert limits.next_ms(lease, due_ms - 1) == 1, "the step wakes up for it"
    assert limits.warning(due_ms) == f"the walltime of {walltime_s:g} s ends in {left} s"
    assert limits.warning(due_ms + 1) == ""


def test_a_warning_that_comes_too_late_promises_no_rest() -> None:
    limits = Limits(SpecDouble(30.0, 4.0), 0)
    assert limits.warning(4_000) == "the walltime of 4 s is over"

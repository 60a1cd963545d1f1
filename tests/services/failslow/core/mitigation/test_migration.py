"""The loss that a migration spared a job is an estimate by the durations of earlier faults."""

from __future__ import annotations

import pytest

from services.failslow.core.mitigation.durations import ObservedFault, Survival
from services.failslow.core.mitigation.migration import FollowedMigration

LONG = Survival.of([ObservedFault(36_000)] * 1000)
SHORT = Survival.of([ObservedFault(110)] * 1000)


def migration(slowdown: float = 1.0) -> FollowedMigration:
    return FollowedMigration(
        "j/1/migrate/1", "f", "acme", 1, slowdown, elapsed_s=100, lost_work_s=20, left_s=500
    )


def test_the_cost_is_the_stop_and_the_work_that_is_lost() -> None:
    assert migration().cost_at(540) == 60
    assert migration().cost_at(400) == 20


def test_a_job_that_never_ran_again_has_gained_nothing() -> None:
    assert migration().avoided_s(10_000, LONG) == 0


def test_a_long_fault_would_have_lasted_as_long_as_the_job() -> None:
    """600 s of work take 1,200 s at half speed: 600 s of loss."""
    moved = migration()
    moved.started_s = 600
    assert moved.avoided_s(1200, LONG) == pytest.approx(600, rel=0.01)


def test_a_short_fault_would_have_ended_soon() -> None:
    moved = migration()
    moved.started_s = 600
    assert moved.avoided_s(1200, SHORT) < 20


def test_the_rest_of_a_fault_is_bounded_by_the_span_that_counts() -> None:
    for survival in (LONG, SHORT, Survival.of([])):
        assert 0 <= survival.rest_s(50, 30) <= 30
        assert survival.rest_s(50, 0) == 0

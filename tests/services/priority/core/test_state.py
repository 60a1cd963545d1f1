"""Use of GPUs decays with the half-life of the pool; times and names follow from its settings."""

from __future__ import annotations

from services.priority.core.queue.queue_view import Clock
from services.priority.core.state import HALF_LIFE_S, DecayedUsage, PriorityState
from tests.harness.decider import AT
from tests.services.priority.core.queues import queue


def test_use_halves_in_a_half_life_and_new_use_adds_to_the_rest() -> None:
    usage = DecayedUsage(800.0, AT)
    assert usage.decayed(AT + 100_000, 100.0) == 400.0
    usage.add(50.0, AT + 200_000, 100.0)
    assert (usage.value, usage.at) == (250.0, AT + 200_000)


def test_use_does_not_grow_where_a_clock_goes_back() -> None:
    assert DecayedUsage(8.0, AT).decayed(AT - 1_000_000, 1.0) == 8.0


def test_the_half_life_is_in_wall_seconds_of_the_pool() -> None:
    state = queue(half_life_s=7200.0, time_scale=60.0)
    assert (state.name, state.time_scale, state.half_life_wall_s) == ("p", 60.0, 120.0)


def test_a_lane_without_a_pool_has_the_defaults() -> None:
    state = PriorityState(3)
    assert (state.name, state.time_scale, state.half_life_wall_s) == ("", 1.0, HALF_LIFE_S)
    assert state.capacity_gpus == 0.0


def test_tenants_are_numbered_in_the_order_of_their_first_job() -> None:
    state = PriorityState(0)
    assert [state.number_of(tenant) for tenant in ("b", "a", "b")] == [0, 1, 0]


def test_the_clock_of_a_pool_begins_with_its_first_job() -> None:
    state = queue(time_scale=60.0)
    state.origin = AT
    assert state.clock(AT + 2_000) == Clock(AT + 2_000, AT, 60.0)
    assert PriorityState(0).clock(AT).origin == 0

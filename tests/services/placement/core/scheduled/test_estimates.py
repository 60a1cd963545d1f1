"""Estimates of a live job follow from what it declares."""

from __future__ import annotations

from typing import Any

import pytest

from services.placement.core.scheduled.cluster import cluster_view
from services.placement.core.scheduled.estimates import rates_of, steps_of
from shared.contracts.placement import JobPlaced
from shared.performance.footprint import Footprint
from shared.performance.links import LinkTier
from tests.services.placement.core.lane import Lane, job, lane, only
from tests.services.placement.core.scheduled.choosing import workers_on

LINKED = {"rack": 0.5, "spine": 0.25}


def waiting(**fields: Any) -> Lane:
    pool = lane("a", gpus=8)
    pool.run(job("full", 8))
    pool.submit(job("one", 1, workers=4, **fields))
    return pool


def test_steps_are_as_much_longer_over_links_as_the_job_declares() -> None:
    steps = steps_of(waiting(spread_speeds=LINKED).job("one"))
    assert steps is not None
    assert [steps.slowdown(4, tier, LinkTier.NODE) for tier in LinkTier] == [1, 2, 4]
    rack = steps_of(waiting(spread_speeds={"rack": 0.5}).job("one"))
    assert rack is not None and rack.slowdown(4, LinkTier.SPINE, LinkTier.NODE) == 2


def test_rates_over_nodes_are_those_of_a_rack_and_unknown_if_undeclared() -> None:
    spread = Footprint("a100", (2, 2), 4)
    own = rates_of(waiting(spread_speeds=LINKED, gpu_speeds={"a100": 3.0}).job("one"), ("a100",))
    assert own is not None
    assert (own.consolidated_rate("a100", 4), own.rate(spread)) == (3.0, 1.5)
    typed = rates_of(waiting(gpu_speeds={"a100": 3.0}).job("one"), ("a100",))
    assert typed is not None and typed.rate(spread) is None


def test_a_job_that_declares_nothing_has_no_speeds() -> None:
    plain = waiting().job("one")
    assert (rates_of(plain, ("a100",)), steps_of(plain)) == (None, None)


def test_the_rest_of_a_gang_over_nodes_is_that_of_its_speed_there() -> None:
    pool = lane("a", "b", gpus=2)
    pool.run(job("one", 1, workers=4, walltime_s=1000, spread_speeds={"rack": 0.5}))
    later = cluster_view(pool.state, pool.now + 100_000).job_by_id["one"]
    assert later.estimates.work_left == pytest.approx(450.0, abs=1), "what its walltime leaves"


@pytest.mark.parametrize(("speeds", "waits"), [(LINKED, True), (None, False)])
def test_dally_lets_a_job_wait_for_a_node_that_links_slow_down(
    speeds: dict[str, float] | None, waits: bool
) -> None:
    pool = lane("a", "b", gpus=4, scheduler="dally", min_residency_s=0)
    pool.run(job("x", 3), job("y", 3))
    assert {*workers_on(pool, "x"), *workers_on(pool, "y")} == {"a", "b"}
    pool.submit(job("one", 1, workers=2, spread_speeds=speeds))
    events = pool.wake()
    placed = [event for event in only(JobPlaced, events) if event.job_id == "one"]
    assert bool(placed) != waits
    assert all(event.terms["chosen_nodes"] == 1.0 for event in placed)

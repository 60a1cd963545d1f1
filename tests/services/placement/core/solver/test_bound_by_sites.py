"""The bound by sites: never below the best plan, and tight where one job fills each site."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from services.placement.core.round.view import view_of
from services.placement.core.solver.bound import most_gain
from services.placement.core.solver.bound_by_sites import (
    CLOSE,
    PricedStart,
    lowest,
    most_by_sites,
    sites_of,
)
from services.placement.core.solver.export import instance_of
from services.placement.core.solver.instance import Instance
from services.placement.core.solver.objective import score
from services.placement.core.solver.solve import solve
from tests.services.placement.core.lane import Lane, job

TIDY = ("fragmentation", "balance", "room")
DENSE = {"v100": 8.0, "k80": 1.0}
EVEN = {"v100": 1.0, "k80": 1.0}


def value_of(instance: Instance, plan: Any) -> int:
    terms = score(instance, plan).terms
    return sum(value for name, value in terms.items() if name not in TIDY)


def two_types(*jobs: tuple[str, dict[str, float]]) -> Instance:
    made = Lane()
    made.pool(round_ms=60_000)
    made.node("a", 1, gpu_type="k80")
    made.node("b", 1, gpu_type="v100")
    made.submit(job("blocker", gpus=64))
    made.submit(*(job(name, gpu_speeds=speeds) for name, speeds in jobs))
    return instance_of(view_of(made.state, made.now))


def test_a_job_on_the_wrong_type_leaves_something_to_gain() -> None:
    swapped = two_types(("dense", DENSE), ("even", EVEN))
    gained = value_of(swapped, solve(swapped, 1.0).plan) - value_of(swapped, swapped.greedy)
    assert 0 < gained <= most_gain(swapped)


def test_where_each_job_is_on_its_type_there_is_nothing_to_gain() -> None:
    assert most_gain(two_types(("even", EVEN), ("dense", DENSE))) <= 0


def test_nodes_that_are_alike_for_each_job_are_one_site() -> None:
    assert len(sites_of(two_types(("a", EVEN), ("b", EVEN)))) == 1
    assert len(sites_of(two_types(("a", DENSE), ("b", EVEN)))) == 2


def test_where_no_job_has_two_speeds_there_is_no_such_bound() -> None:
    assert most_by_sites(two_types(("a", EVEN), ("b", EVEN)), 0) is None


def test_prices_fall_on_the_sites_that_jobs_compete_for() -> None:
    """Of two jobs that are worth 10 on the first site and 1 on the second one is there."""
    either = [PricedStart(10, 1000, (0,)), PricedStart(1, 1000, (1,))]
    assert lowest([either, either], [False, False], [1000, 1000], 11) == 11
    assert lowest([either, either], [False, False], [2000, 0], 0) <= 20


def test_a_job_that_has_to_start_takes_its_gpus_from_others() -> None:
    first, second = [PricedStart(1, 1000, (0,))], [PricedStart(10, 1000, (0,))]
    assert lowest([first, second], [True, False], [1000], 1) < 10
    assert lowest([first, second], [False, False], [1000], 10) == 10


@st.composite
def mixed(draw: st.DrawFn) -> Instance:
    """Nodes of two types in two racks, jobs that run and jobs that wait, with what they declare."""
    made = Lane()
    made.pool(round_ms=60_000)
    for number in range(draw(st.integers(2, 5))):
        gpu_type, rack = draw(st.sampled_from(("v100", "k80"))), draw(st.sampled_from(("r1", "r2")))
        made.node(f"n{number}", draw(st.sampled_from((1, 2, 4))), gpu_type=gpu_type, rack=rack)
    speeds = st.sampled_from((None, DENSE, EVEN, {"v100": 2.0}))
    spreads = st.sampled_from((None, {"rack": 0.9, "spine": 0.3}))
    for number in range(draw(st.integers(0, 2))):
        made.run(job(f"old{number}", gpu_speeds=draw(speeds), walltime_s=100.0 * (number + 1)))
    made.submit(job("blocker", gpus=64))
    for number in range(draw(st.integers(1, 5))):
        workers = draw(st.sampled_from((1, 1, 2, 3)))
        size = draw(st.sampled_from((0.5, 1, 2))) if workers == 1 else 1
        made.submit(
            job(
                f"new{number}",
                gpus=size,
                workers=workers,
                gpu_speeds=draw(speeds),
                spread_speeds=draw(spreads),
                walltime_s=draw(st.sampled_from((None, 50.0, 4000.0))),
            )
        )
    return instance_of(view_of(made.state, made.now))


@settings(max_examples=60, deadline=None)
@given(mixed())
def test_no_plan_is_worth_more_than_the_bound(instance: Instance) -> None:
    result = solve(instance, 2.0)
    planned, best = value_of(instance, instance.greedy), value_of(instance, result.plan)
    equal = CLOSE * planned
    most = most_by_sites(instance, planned)
    assert most is None or best <= most + equal
    assert best - planned <= max(0, most_gain(instance)) + equal

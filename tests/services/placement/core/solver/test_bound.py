"""The bound of a round: never below the best plan, and tight where nodes are equal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.placement.core.solver.bound import most_gain, most_value, prices_of
from services.placement.core.solver.contended import instance_for_round
from services.placement.core.solver.instance import (
    FreeNode,
    GangRequest,
    Instance,
    NodeClass,
    Victim,
    VictimShare,
)
from services.placement.core.solver.objective import score
from services.placement.core.solver.solve import solve
from tests.services.placement.core.lane import Lane, job

TIDY = ("fragmentation", "balance", "room")


def value_of(instance: Instance, plan: Any) -> int:
    terms = score(instance, plan).terms
    return score(instance, plan).total - sum(terms[name] for name in TIDY)


@given(
    nodes=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    sizes=st.lists(st.sampled_from([0.5, 1, 2, 3, 4, 6, 8]), min_size=2, max_size=7),
    running=st.lists(st.integers(1, 4), max_size=3),
)
def test_no_plan_is_worth_more_than_the_bound(
    nodes: list[int], sizes: list[float], running: list[int]
) -> None:
    made = Lane()
    made.pool(solver="cpsat", solver_ms=500)
    for number, gpus in enumerate(nodes):
        made.node(f"n{number}", gpus)
    for number, gpus in enumerate(running):
        made.submit(job(f"r{number}", gpus=gpus, priority_class="low"))
    made.submit(*(job(f"j{number}", gpus=gpus) for number, gpus in enumerate(sizes)))
    if made.state.open_round is None:
        return
    instance = instance_for_round(made.state)
    solved = solve(instance, 2.0)
    assert value_of(instance, solved.plan) <= most_value(instance)
    assert value_of(instance, solved.plan) - value_of(instance, instance.greedy) <= most_gain(
        instance
    )


def test_on_equal_nodes_that_greedy_fills_there_is_nothing_to_gain() -> None:
    made = Lane()
    made.pool(solver="cpsat", solver_ms=500)
    made.node("n1", 8)
    made.submit(job("a", gpus=4), job("b", gpus=4), job("c", gpus=4))
    assert most_gain(instance_for_round(made.state)) == 0


def test_a_victim_without_room_elsewhere_is_priced_as_stopped() -> None:
    full = NodeClass(8, 0, (), 0, 0, 0, (FreeNode("n0", (0,) * 8),), (VictimShare(0, 8, 0, 0),))
    empty = NodeClass(8, 8, (), 0, 0, 0, (FreeNode("n1", (1000,) * 8),))
    gang = GangRequest("a", 1, 8, 1000, 0, 0, 1, 1, (0,), (1000,), 0, 800, victims=(0,))
    held = replace(gang, job_id="v", classes=(0, 1), speeds=(1000, 1000), victims=())
    victim = Victim("v", 1, 50, 20, held)
    assert most_value(Instance((full, empty), (gang,), (victim,))) == 800 - 20
    pinned = replace(victim, request=replace(held, classes=(0,), speeds=(1000,)))
    assert most_value(Instance((full, empty), (gang,), (pinned,))) == 800 - 50


def test_scattered_gpus_hold_no_worker_that_needs_more_of_them_side_by_side() -> None:
    nodes = tuple(FreeNode(f"n{n}", (1000,) * 4) for n in range(2))
    cls = NodeClass(8, 4, (), 64_000, 65_536, 0, nodes)
    small = GangRequest("a", 1, 1, 1000, 0, 0, 1, 1, (0,), (1000,), 0, 100)
    large = GangRequest("b", 1, 8, 1000, 0, 0, 1, 1, (0,), (1000,), 1, 800, victims=(0,))
    victim = Victim("v", 1, 10, 10, replace(small, job_id="v"))
    assert most_value(Instance((cls,), (small, large), (victim,))) == 100
    emptied = replace(cls, victim_shares=(VictimShare(0, 4, 0, 0),), nodes=nodes[:1])
    held = replace(victim, request=replace(small, job_id="v", gpus=4), price=30, migration_price=30)
    assert most_value(Instance((emptied,), (large,), (held,))) == 800 - 30


def test_a_larger_job_behind_a_smaller_one_is_a_gain() -> None:
    made = Lane()
    made.pool(solver="cpsat", solver_ms=500)
    made.node("n1", 8)
    made.submit(job("a", gpus=1), job("b", gpus=4), job("c", gpus=7))
    assert most_gain(instance_for_round(made.state)) > 0


def test_the_cheapest_gpus_are_bought_first() -> None:
    assert prices_of([(10, 2), (3, 1), (40, 4)], 5) == [0, 3, 8, 13, 23, 33]

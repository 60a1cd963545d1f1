"""The solver's plans: against enumeration, against greedy, against the rules."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.placement.core.checker import faults
from services.placement.core.export import instance_of
from services.placement.core.instance import Instance, RoundPlan, SolvedPlan, Start, Wish
from services.placement.core.objective import score
from services.placement.core.places import gpus_of
from services.placement.core.shape import GPU, Slot
from services.placement.core.solve import solve
from services.placement.core.view import view_of
from tests.services.placement.core.lane import Lane, job, lane

LIMIT = 2.0


def taken(made: Lane) -> Instance:
    """The instance of the lane as it is now."""
    return instance_of(view_of(made.state, made.now))


def solved(instance: Instance) -> SolvedPlan:
    found = solve(instance, LIMIT)
    assert faults(instance, found.plan) == []
    assert found.objective == score(instance, found.plan).total >= found.greedy
    assert found.objective <= found.bound
    return found


def ways(instance: Instance, wish: Wish, index: int) -> Iterator[Start]:
    """Every set of slots of the gang, up to GPUs that are alike."""
    nodes = [node for cls in wish.classes for node in instance.classes[cls].nodes]
    spots = [
        (node.node_id, (gpu,) if wish.is_share else ())
        for node in nodes
        for gpu in (gpus_of(node) if wish.is_share else (0,))
    ]
    for many in range(wish.min_workers, wish.max_workers + 1):
        for chosen in combinations_with_replacement(spots, many):
            yield Start(index, tuple(slot(wish, name, gpus) for name, gpus in chosen))


def slot(wish: Wish, name: str, gpus: tuple[int, ...]) -> Slot:
    return Slot(name, gpus, wish.milli, wish.cpu_milli, wish.mem_mib)


def named(instance: Instance, plan: RoundPlan) -> RoundPlan:
    """Whole GPUs are handed out lowest first, as far as they go."""
    free = {
        node.node_id: [gpu for gpu, milli in enumerate(node.free) if milli == GPU]
        for cls in instance.classes
        for node in cls.nodes
    }
    opened = {(s.node_id, g) for start in plan.starts for s in start.slots for g in s.gpus}
    for name, gpu in opened:
        if gpu in free[name]:
            free[name].remove(gpu)
    starts = []
    for start in plan.starts:
        wish, slots = instance.wishes[start.wish], []
        for each in start.slots:
            gpus = each.gpus
            if not gpus and wish.gpus:
                gpus, free[each.node_id] = (
                    tuple(free[each.node_id][: wish.gpus]),
                    free[each.node_id][wish.gpus :],
                )
            slots.append(each._replace(gpus=gpus))
        starts.append(Start(start.wish, tuple(slots)))
    return RoundPlan(tuple(starts))


def optimum(instance: Instance) -> int:
    choices = [[None, *ways(instance, wish, index)] for index, wish in enumerate(instance.wishes)]
    plans = (
        named(instance, RoundPlan(tuple(start for start in each if start)))
        for each in product(*choices)
    )
    return max(score(instance, plan).total for plan in plans if not faults(instance, plan))


@st.composite
def small_instances(draw: st.DrawFn) -> Instance:
    """Two or three nodes, partly used, and a few jobs in line."""
    made = Lane()
    made.pool()
    for number in range(draw(st.integers(2, 3))):
        made.node(
            f"n{number}",
            draw(st.sampled_from((2, 4))),
            cpus=draw(st.sampled_from((3.0, 64.0))),
            mem_gib=64.0,
            gpu_type=draw(st.sampled_from(("a100", "v100"))),
            rack=draw(st.sampled_from(("r1", "r2"))),
        )
    for number in range(draw(st.integers(0, 2))):
        made.run(job(f"old{number}", gpus=draw(st.sampled_from((1, 0.5, 2)))))
    made.pool(round_ms=60_000)
    made.submit(job("first", gpus=64))
    for number in range(draw(st.integers(1, 3))):
        workers = draw(st.sampled_from((1, 1, 2)))
        made.submit(
            job(
                f"new{number}",
                gpus=draw(st.sampled_from((0, 0.4, 0.6, 1, 2, 3))) if workers == 1 else 1,
                workers=workers,
                cpus=draw(st.sampled_from((1, 2))),
                gpu_types=draw(st.sampled_from(((), ("v100",)))),
                gpu_speeds=draw(st.sampled_from((None, {"a100": 3.0}))),
            )
        )
    return taken(made)


@settings(max_examples=60, deadline=None)
@given(small_instances())
def test_a_proven_optimum_is_the_best_of_all_plans(instance: Instance) -> None:
    found = solved(instance)
    assert found.exact and found.bound == found.objective == optimum(instance)


@pytest.mark.parametrize("status", ["optimal"])
def test_a_better_set_of_jobs(status: str) -> None:
    """Greedy gives the second in line the only node where the third fits too."""
    made = lane("n1", "n2", gpus=4)
    made.pool(round_ms=60_000)
    made.run(job("old", gpus=2))
    made.submit(job("huge", gpus=64), job("a", gpus=1), job("b", gpus=1))
    found = solved(taken(made))
    assert found.status in (status, "kept_greedy")

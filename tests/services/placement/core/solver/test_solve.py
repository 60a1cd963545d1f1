"""The solver's plans: against enumeration, against greedy, against the rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations_with_replacement, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.placement.core.migration.targets import targets_reserved
from services.placement.core.pool.shape import GPU, Slot
from services.placement.core.round.view import view_of
from services.placement.core.solver.checker import find_violations
from services.placement.core.solver.contended import instance_for_round, no_plan
from services.placement.core.solver.export import instance_of
from services.placement.core.solver.instance import (
    GangRequest,
    Instance,
    RoundPlan,
    Solution,
    Start,
)
from services.placement.core.solver.objective import score
from services.placement.core.solver.places import gpus_of
from services.placement.core.solver.solve import solve
from shared.contracts.admission import JobAdmitted
from tests.services.placement.core.lane import Lane, job

LIMIT = 2.0


def taken(made: Lane) -> Instance:
    """The instance of the lane as it is now."""
    return instance_of(view_of(made.state, made.now))


def solved(instance: Instance) -> Solution:
    result = solve(instance, LIMIT)
    assert find_violations(instance, result.plan) == []
    assert result.objective == score(instance, result.plan).total >= result.greedy
    assert result.objective <= result.bound
    return result


def ways(instance: Instance, request: GangRequest, index: int) -> Iterator[Start]:
    """Every set of slots of the gang, up to GPUs that are alike."""
    nodes = [node for cls in request.classes for node in instance.classes[cls].nodes]
    spots = [
        (node.node_id, (gpu,) if request.is_share else ())
        for node in nodes
        for gpu in (gpus_of(node) if request.is_share else (0,))
    ]
    for many in range(request.min_workers, request.max_workers + 1):
        for chosen in combinations_with_replacement(spots, many):
            yield Start(index, tuple(slot(request, name, gpus) for name, gpus in chosen))


def slot(request: GangRequest, name: str, gpus: tuple[int, ...]) -> Slot:
    return Slot(name, gpus, request.milli, request.cpu_milli, request.mem_mib)


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
        request, slots = instance.requests[start.request], []
        for each in start.slots:
            gpus = each.gpus
            if not gpus and request.gpus:
                gpus, free[each.node_id] = (
                    tuple(free[each.node_id][: request.gpus]),
                    free[each.node_id][request.gpus :],
                )
            slots.append(each._replace(gpus=gpus))
        starts.append(Start(start.request, tuple(slots)))
    return RoundPlan(tuple(starts))


def optimum(instance: Instance) -> int:
    choices = [
        [None, *ways(instance, request, index)] for index, request in enumerate(instance.requests)
    ]
    plans = (
        named(instance, RoundPlan(tuple(start for start in each if start)))
        for each in product(*choices)
    )
    return max(score(instance, plan).total for plan in plans if not find_violations(instance, plan))


@st.composite
def small_instances(draw: st.DrawFn) -> Instance:
    """Two or three nodes, partly used, and a few jobs in the queue."""
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
                spread_speeds=draw(st.sampled_from((None, {"rack": 0.75, "spine": 0.25}))),
            )
        )
    return taken(made)


@settings(max_examples=60, deadline=None)
@given(small_instances())
def test_a_proven_optimum_is_the_best_of_all_plans(instance: Instance) -> None:
    result = solved(instance)
    assert result.exact and result.bound == result.objective == optimum(instance)


def pool(*nodes: dict[str, Any], **settings: object) -> Lane:
    """Nodes by their fields, one name per node."""
    made = Lane()
    made.pool(solver="cpsat", **settings)
    for fields in nodes:
        made.node(str(fields["name"]), **{k: v for k, v in fields.items() if k != "name"})
    return made


def candidate(made: Lane, *jobs: JobAdmitted) -> Instance:
    """A contended round over these jobs: one more needs more than there is."""
    made.submit(*jobs, job("huge", gpus=64))
    assert made.state.open_round is not None
    return instance_for_round(made.state)


def nodes_to_empty(result: Solution, instance: Instance) -> dict[str, list[str]]:
    return {
        instance.requests[start.request].job_id: [each.node_id for each in start.slots]
        for start in result.plan.starts
    }


def greedy_homes(instance: Instance) -> dict[str, list[str]]:
    return {
        instance.requests[start.request].job_id: [each.node_id for each in start.slots]
        for start in instance.greedy.starts
    }


def test_whole_gpus_are_packed_so_that_more_starts() -> None:
    """Greedy puts 2 and 2 on the nodes of 3 and 4 free GPUs; then 3 fits nowhere."""
    made = pool({"name": "n3", "gpus": 3}, {"name": "n4", "gpus": 4})
    instance = candidate(made, job("a", gpus=2), job("b", gpus=2), job("c", gpus=3))
    assert set(greedy_homes(instance)) == {"a", "b"}
    result = solved(instance)
    assert nodes_to_empty(result, instance) == {"a": ["n4"], "b": ["n4"], "c": ["n3"]}
    assert result.status == "optimal" and result.bound == result.objective


def test_a_gang_is_started_whole_or_not_at_all() -> None:
    """The second in the queue leaves no room for the gang; of the gang no part may start."""
    made = pool({"name": "n1", "gpus": 4}, {"name": "n2", "gpus": 4})
    instance = candidate(made, job("a", gpus=1), job("gang", gpus=4, workers=2))
    assert set(nodes_to_empty(solved(instance), instance)) == {"a"}
    made = pool({"name": "n1", "gpus": 4}, {"name": "n2", "gpus": 5})
    instance = candidate(made, job("a", gpus=1), job("gang", gpus=4, workers=2))
    assert set(greedy_homes(instance)) == {"a"}
    assert nodes_to_empty(solved(instance), instance) == {"a": ["n2"], "gang": ["n1", "n2"]}


def test_shares_fill_gpus_that_are_in_use() -> None:
    """0.6 first goes to the tightest GPU, where 0.4 and 0.3 together would have fitted."""
    made = pool({"name": "n1", "gpus": 2})
    made.run(job("x", gpus=0.3), job("y", gpus=0.4))
    made.run(job("z", gpus=0.6))
    free = sorted(made.free("n1"))
    instance = candidate(made, job("a", gpus=free[0] / 1000), job("b", gpus=free[1] / 1000))
    assert set(nodes_to_empty(solved(instance), instance)) == {"a", "b"}


def test_cores_bind() -> None:
    """The first in the queue may not take the node whose cores the second needs."""
    slim = {"name": "a-slim", "gpus": 2, "cpus": 2.0}
    made = pool(slim, {"name": "b-wide", "gpus": 1, "cpus": 64.0})
    instance = candidate(made, job("light", gpus=1, cpus=1), job("heavy", gpus=1, cpus=32))
    assert greedy_homes(instance) == {"light": ["b-wide"]}
    assert nodes_to_empty(solved(instance), instance) == {"light": ["a-slim"], "heavy": ["b-wide"]}


def test_memory_binds() -> None:
    made = pool({"name": "a", "gpus": 2, "mem_gib": 8.0}, {"name": "b", "gpus": 1})
    instance = candidate(made, job("small", gpus=1, mem_gib=1), job("large", gpus=1, mem_gib=512))
    assert greedy_homes(instance) == {"small": ["b"]}
    assert nodes_to_empty(solved(instance), instance) == {"small": ["a"], "large": ["b"]}


def test_each_job_gets_the_gpu_type_that_runs_it_faster() -> None:
    """Two jobs with opposite affinities (as in a unit test of Gavel, OSDI '20)."""
    made = pool(
        {"name": "a", "gpu_type": "k80", "gpus": 1}, {"name": "b", "gpu_type": "v100", "gpus": 1}
    )
    instance = candidate(
        made,
        job("dense", gpus=1, gpu_speeds={"v100": 8.0, "k80": 1.0}),
        job("sparse", gpus=1, gpu_speeds={"v100": 1.0, "k80": 1.0}),
    )
    assert greedy_homes(instance) == {"dense": ["a"], "sparse": ["b"]}
    assert nodes_to_empty(solved(instance), instance) == {"dense": ["b"], "sparse": ["a"]}


def test_a_gang_stays_in_one_rack() -> None:
    nodes = [{"name": f"n{n}", "gpus": 4, "rack": f"r{n % 2}"} for n in range(4)]
    instance = candidate(pool(*nodes), job("gang", gpus=4, workers=2))
    assert greedy_homes(instance) == {"gang": ["n0", "n1"]}
    (names,) = nodes_to_empty(solved(instance), instance).values()
    assert names in (["n0", "n2"], ["n1", "n3"])


def test_a_gang_that_links_slow_down_is_on_one_node_and_another_is_not() -> None:
    """Greedy gives the whole node to the gang that hides its communication."""
    nodes = [{"name": f"n{n}", "gpus": g, "rack": f"r{n}"} for n, g in enumerate((2, 2, 3))]
    instance = candidate(
        pool(*nodes),
        job("hides", gpus=1, workers=3, spread_speeds={"rack": 1.0, "spine": 1.0}),
        job("waits", gpus=1, workers=3, spread_speeds={"rack": 0.5, "spine": 0.1}),
    )
    assert greedy_homes(instance)["hides"] == ["n2"] * 3
    homes = nodes_to_empty(solved(instance), instance)
    assert homes["waits"] == ["n2"] * 3 and len(set(homes["hides"])) == 2


def test_slow_nodes_are_left_to_whoever_comes_last() -> None:
    made = pool({"name": "a", "gpus": 4}, {"name": "b", "gpus": 5})
    made.state.board.slow["a"] = {"f1": 2.0}
    instance = candidate(made, job("first", gpus=4), job("second", gpus=4))
    assert greedy_homes(instance)["first"] == ["a"]
    assert nodes_to_empty(solved(instance), instance) == {"first": ["b"], "second": ["a"]}


def test_a_slow_gpu_of_a_node_is_left_over() -> None:
    """The node with a slow GPU is as good as one without for a job that needs none of that."""
    made = pool({"name": "a", "gpus": 5}, {"name": "b", "gpus": 4})
    made.state.board.suspect("a", "f1", 4.0, None, gpu=0)
    instance = candidate(made, job("first", gpus=4), job("second", gpus=4))
    plan = solved(instance).plan
    assert {slot.gpus for start in plan.starts for slot in start.slots if slot.node_id == "a"} == {
        (1, 2, 3, 4)
    }
    assert [request.speeds for request in instance.requests] == [(GPU, GPU)] * 2


def test_a_job_that_would_get_a_slow_gpu_goes_elsewhere() -> None:
    made = pool({"name": "a", "gpus": 4}, {"name": "b", "gpus": 5})
    made.state.board.suspect("a", "f1", 2.0, None, gpu=3)
    instance = candidate(made, job("first", gpus=4), job("second", gpus=4))
    assert nodes_to_empty(solved(instance), instance) == {"first": ["b"], "second": ["a"]}


def test_room_is_left_for_the_next_job() -> None:
    """Best fit takes the node of four, where a worker of the blocked job would have fitted."""
    made = pool({"name": "a", "gpus": 4}, {"name": "b", "gpus": 5})
    made.submit(job("x", gpus=1), job("next", gpus=4, workers=3))
    instance = instance_for_round(made.state)
    result = solved(instance)
    assert greedy_homes(instance) == {"x": ["a"]}
    assert nodes_to_empty(result, instance) == {"x": ["b"]}
    assert instance.next_worker.gpus == 4 and result.terms["room"] == 100


def test_the_first_in_line_is_never_passed_over() -> None:
    """Eight GPUs for the second are worth more than one for the first, and still it starts."""
    made = pool({"name": "n1", "gpus": 8})
    instance = candidate(made, job("one", gpus=1), job("all", gpus=8))
    assert instance.requests[0].must_start
    assert set(nodes_to_empty(solved(instance), instance)) == {"one"}
    free = replace(
        instance, requests=(replace(instance.requests[0], must_start=False), instance.requests[1])
    )
    assert set(nodes_to_empty(solve(free, LIMIT), free)) == {"all"}, (
        "so it is the rule that decides"
    )


def preempting(lost_s: float) -> Instance:
    """Two low jobs of two GPUs each run; one lost `lost_s` more work. A high one needs two."""
    made = pool({"name": "n1", "gpus": 4})
    made.run(job("old", gpus=2, priority_class="low"))
    made.run(job("young", gpus=2, priority_class="low"), after_ms=round(lost_s * 1000))
    made.submit(job("boss", gpus=2, priority_class="high"), after_ms=1000)
    return instance_for_round(made.state)


def test_lost_work_chooses_the_victim() -> None:
    instance = preempting(7200.0)
    result = solved(instance)
    stopped = [instance.victims[victim].job_id for victim in result.plan.stops]
    assert stopped == ["young"] and [
        reservation.request for reservation in result.plan.reservations
    ] == [0]
    assert result.terms["lost_work"] < 0


def test_a_victim_that_fits_elsewhere_moves() -> None:
    """The boss needs the whole node; there is a GPU elsewhere for the job that is in its way."""
    made = pool({"name": "a", "gpus": 2}, min_residency_s=0.0)
    made.run(job("small", gpus=1, priority_class="low"))
    made.node("b", 1)
    made.submit(job("boss", gpus=2, priority_class="high"), after_ms=400_000)
    instance = instance_for_round(made.state)
    result = solved(instance)
    (migration,) = result.plan.migrations
    assert result.plan.stops == (migration.victim,) and [
        slot.node_id for slot in migration.slots
    ] == ["b"]
    assert result.terms["lost_work"] == -instance.victims[0].migration_price


@st.composite
def crowded(draw: st.DrawFn) -> Instance:
    """More nodes than single bins, victims, gangs, shares, classes: too much to enumerate."""
    made = Lane()
    made.pool(solver="cpsat", preemption="ranked", min_residency_s=0.0)
    for number in range(draw(st.integers(3, 60))):
        made.node(f"n{number:02d}", draw(st.sampled_from((4, 8))), rack=f"r{number % 3}")
    classes = st.sampled_from(("high", "normal", "low"))
    sizes = st.sampled_from((0.25, 0.5, 1, 2, 4))
    for number in range(draw(st.integers(5, 40))):
        shape: dict[str, Any] = {"gpus": draw(sizes), "priority_class": draw(classes)}
        made.submit(job(f"old{number}", **shape))
        open_ = made.state.open_round
        if open_ is not None:
            made.feed(made.an("local", no_plan(open_.seq, "died")))
    made.ready(*made.state.running)
    for number in range(draw(st.integers(2, 25))):
        workers = draw(st.sampled_from((1, 1, 2, 6)))
        shape = {"gpus": draw(sizes) if workers == 1 else 4, "priority_class": draw(classes)}
        made.submit(job(f"new{number}", workers=workers, **shape))
    with targets_reserved(made.state):
        return taken(made)


@settings(max_examples=40, deadline=None)
@given(crowded())
def test_no_plan_is_below_greedys_or_breaks_a_rule(instance: Instance) -> None:
    assert find_violations(instance, instance.greedy) == []
    result = solve(instance, 0.3)
    assert find_violations(instance, result.plan) == []
    assert result.objective == score(instance, result.plan).total >= result.greedy
    assert result.greedy == score(instance, instance.greedy).total


BROKEN = {
    "a GPU twice": lambda p: replace(p, starts=(*p.starts, replace(p.starts[0], request=1))),
    "a wish twice": lambda p: replace(p, starts=(*p.starts, p.starts[0])),
    "nobody first": lambda p: replace(p, starts=()),
    "half a worker": lambda p: replace(
        p, starts=(replace(p.starts[0], slots=(p.starts[0].slots[0]._replace(gpus=(0,)),)),)
    ),
    "elsewhere": lambda p: replace(
        p, starts=(replace(p.starts[0], slots=(p.starts[0].slots[0]._replace(node_id="b"),)),)
    ),
    "a stop for nobody": lambda p: replace(p, stops=(0,)),
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_checker_finds(what: str) -> None:
    made = pool({"name": "a", "gpus": 2}, {"name": "b", "gpus": 2, "gpu_type": "v100"})
    instance = candidate(made, job("x", gpus=2, gpu_types=("a100",)), job("y", gpus=2))
    plan = RoundPlan((Start(0, (Slot("a", (0, 1), GPU, 1000, 1024),)),))
    assert find_violations(instance, plan) == []
    assert find_violations(instance, BROKEN[what](plan)) != []

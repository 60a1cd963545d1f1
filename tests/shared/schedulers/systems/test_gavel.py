"""The conformance tests of Gavel: opposite affinities, levels, and objectives by hand."""

from __future__ import annotations

import pytest

from shared.schedulers.hooks import Memory
from shared.schedulers.systems.gavel import (
    GavelBlind,
    GavelCost,
    GavelExchange,
    GavelFinishTime,
    GavelMakespan,
    GavelMaxMin,
    GavelWaterFilling,
)
from shared.schedulers.view import ClusterView, TypedNode
from tests.shared.schedulers.views import job, nodes_of, rates, view


def opposite() -> ClusterView:
    jobs = [
        job("a", estimates=rates({"v": 4, "p": 1})),
        job("b", estimates=rates({"v": 1, "p": 4})),
    ]
    return view(jobs, nodes_of(v=1, p=1))


def rate(now: ClusterView, shares: dict[str, dict[str, float]], name: str) -> float:
    table = now.job_by_id[name].estimates.rates
    assert table is not None
    gpus = now.job_by_id[name].gpus
    return sum(
        (table.consolidated_rate(own, gpus) or 0.0) * share for own, share in shares[name].items()
    )


@pytest.mark.parametrize("scheduler", [GavelMaxMin(), GavelWaterFilling(), GavelCost()])
def test_jobs_of_opposite_affinity_get_their_types(scheduler: GavelMaxMin) -> None:
    shares = scheduler.shares(opposite(), {})
    assert shares["a"] == pytest.approx({"v": 1.0})
    assert shares["b"] == pytest.approx({"p": 1.0})


def test_without_speeds_types_count_alike() -> None:
    shares = GavelBlind().shares(opposite(), {})
    assert sum(shares["a"].values()) == pytest.approx(1.0)
    known = view([job("a"), job("b")], nodes_of(v=1, p=1))
    assert GavelMaxMin().shares(known, {}) == GavelBlind().shares(opposite(), {})


def test_a_weight_of_two_is_twice_the_time() -> None:
    jobs = [job("a", weight=2.0, estimates=rates({"v": 1})), job("b", estimates=rates({"v": 1}))]
    shares = GavelMaxMin().shares(view(jobs, nodes_of(v=1)), {})
    assert shares["a"]["v"] == pytest.approx(2 * shares["b"]["v"])


def test_a_gang_of_two_gets_half_the_time_of_one_gpu() -> None:
    jobs = [
        job("a", 2, estimates=rates({"v": 1}, gpus=2)),
        *(job(name, estimates=rates({"v": 1})) for name in "bcd"),
    ]
    shares = GavelMaxMin().shares(view(jobs, nodes_of(v=2)), {})
    assert shares["a"]["v"] == pytest.approx(0.25)
    assert shares["b"]["v"] == pytest.approx(0.5)


def test_all_jobs_end_together_at_the_least_makespan() -> None:
    jobs = [
        job("a", estimates=rates({"v": 2, "p": 1}, left=400)),
        job("b", estimates=rates({"v": 2, "p": 1}, left=200)),
    ]
    now = view(jobs, nodes_of(v=1, p=1))
    shares = GavelMakespan().shares(now, {})
    ends = [400 / rate(now, shares, "a"), 200 / rate(now, shares, "b")]
    assert ends == pytest.approx([200.0, 200.0], rel=0.01)


def test_the_worst_finish_time_ratio_is_least() -> None:
    jobs = [
        job("late", estimates=rates({"v": 1}, left=100)),
        job("new", submit_s=300.0, estimates=rates({"v": 1}, left=100)),
    ]
    now = view(jobs, nodes_of(v=1), now_s=300.0)
    shares = GavelFinishTime().shares(now, {})
    ratios = [
        (now.now_s - own.submit_s + 100 / rate(now, shares, own.job_id)) / 200 for own in now.jobs
    ]
    assert ratios[0] == pytest.approx(ratios[1], rel=0.03)
    assert shares["late"]["v"] > shares["new"]["v"]


def test_work_that_is_done_counts_with_its_time_alone() -> None:
    memory: Memory = {}
    scheduler, nodes = GavelFinishTime(), nodes_of(v=1)
    for now_s, left in ((0.0, 100.0), (100.0, 60.0)):
        jobs = [job(name, estimates=rates({"v": 1}, left=left)) for name in "ab"]
        scheduler.shares(view(jobs, nodes, now_s), memory)
    assert memory["isolated"]["a"] == pytest.approx([80.0, 60.0, 0.5])


def test_cost_prefers_the_cheap_type_where_it_is_not_much_slower() -> None:
    nodes = (TypedNode("n1", "v", 1, "", 2.0), TypedNode("n2", "p", 1, "", 1.0))
    shares = GavelCost().shares(view([job("a", estimates=rates({"v": 3, "p": 2}))], nodes), {})
    assert shares["a"] == pytest.approx({"p": 1.0})


def test_shares_decide_who_runs_and_speeds_where() -> None:
    # The waiting job with the largest claim takes `v` first, though it gains least there.
    jobs = [
        job("a", estimates=rates({"v": 1.0, "p": 0.9})),
        job("b", estimates=rates({"v": 1.0, "p": 0.1})),
    ]
    now, nodes = {}, nodes_of(v=1, p=1)
    for scheduler in (GavelMaxMin(), GavelExchange()):
        memory: Memory = {}
        scheduler.allot(view(jobs, nodes), [], memory)
        memory["shares"] = {"a": {"v": 1.0}, "b": {"v": 0.5, "p": 0.5}}
        memory["ran_s"], memory["total_s"] = {}, {}
        allotted = scheduler.realise(view(jobs, nodes), memory)
        now[scheduler.name] = {name: own.gpu_type for name, own in allotted.items()}
        assert memory["last"] == now[scheduler.name]
    assert now == {"gavel": {"a": "v", "b": "p"}, "gavel_exchange": {"a": "p", "b": "v"}}

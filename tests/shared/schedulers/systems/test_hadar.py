"""The conformance tests of Hadar: prices, payoffs by hand, mixed types, and brute force."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from shared.performance.rates import RateTable
from shared.schedulers.check import violations
from shared.schedulers.compose import propose
from shared.schedulers.hooks import Memory
from shared.schedulers.placing import take
from shared.schedulers.systems.hadar import Hadar, Offer, Prices, note_work
from shared.schedulers.view import (
    CandidateJob,
    ClusterView,
    Estimates,
    Placement,
    TypedNode,
    gpus_of,
)
from simulator.rounds.job import RoundsJob
from simulator.rounds.work import StepWork
from simulator.rounds.world import RoundsOptions, RoundsWorld
from tests.shared.schedulers.views import job, nodes_of, on, rates, view


def test_a_price_rises_from_the_least_to_the_largest_as_the_node_fills() -> None:
    own = Prices({"v": 0.25}, {"v": 4.0})
    prices = [own.of("v", held, 4) for held in range(5)]
    assert prices == pytest.approx([0.25, 0.5, 1.0, 2.0, 4.0])


def test_the_least_price_is_below_each_payoff() -> None:
    jobs = [job(str(n), 1 + n % 2, estimates=fast(10.0 * (n + 1), 1 + n % 2)) for n in range(5)]
    memory: Memory = {}
    now, scheduler = view(jobs, nodes_of(v=4, p=4), now_s=500.0), Hadar()
    note_work(now, memory)
    prices = scheduler.prices(now, memory)
    worths = [scheduler.best_utility(now, own, memory) / own.gpus for own in jobs]
    assert prices.low["v"] < min(worths)
    assert prices.high["v"] == max(worths)


def fast(left: float, gpus: int = 1, v: float = 4.0, p: float = 1.0) -> Estimates:
    return rates({"v": v, "p": p}, gpus, left)


def test_the_job_that_gains_most_chooses_first_and_the_other_takes_the_next_best() -> None:
    jobs = [
        job("a", submit_s=10.0, estimates=fast(100.0, v=1.0, p=0.9)),
        job("b", submit_s=20.0, estimates=fast(100.0, v=1.0, p=0.1)),
    ]
    own = propose(Hadar(), view(jobs, nodes_of(v=1, p=1), now_s=20.0), {})
    assert own.placements == {"b": on("n-v"), "a": on("n-p")}


def test_the_shorter_life_is_worth_more_where_there_is_room_for_one() -> None:
    jobs = [
        job("waited", submit_s=0.0, estimates=fast(40.0)),
        job("new", submit_s=900.0, estimates=fast(40.0)),
    ]
    own = propose(Hadar(), view(jobs, nodes_of(v=1), now_s=1000.0), {})
    assert own.placements == {"new": on("n-v")}


def test_types_are_mixed_where_the_view_allows_it_and_no_type_has_enough() -> None:
    jobs = [job("a", 2, estimates=fast(100.0, 2))]
    now = view(jobs, nodes_of(v=1, p=1))
    assert propose(Hadar(), now, {}).placements == {}
    mixed = replace(now, mixes_types=True)
    own = propose(Hadar(), mixed, {})
    assert own.placements == {"a": (("n-v", 1), ("n-p", 1))}
    assert list(violations(mixed, own)) == []
    assert list(violations(now, own)) == ["GPU types of job a: p, v, must be one"]


def test_a_gang_is_on_one_node_where_it_can_be() -> None:
    nodes = (*(TypedNode(f"n{n}", "v", 1) for n in range(2)), TypedNode("n2", "v", 2))
    own = propose(Hadar(), view([job("a", 2, estimates=fast(100.0, 2))], nodes), {})
    assert own.placements == {"a": on("n2", 2)}


def test_no_gpu_is_idle_beside_a_job_that_can_use_it() -> None:
    jobs = [job(str(n), submit_s=-1e6 * n, estimates=fast(10.0)) for n in range(8)]
    own = propose(Hadar(), view(jobs, nodes_of(v=4, p=2)), {})
    assert sum(gpus_of(placement) for placement in own.placements.values()) == 6


def test_a_job_of_which_nothing_is_known_runs() -> None:
    own = propose(Hadar(), view([job("a"), job("b", 2)], nodes_of(v=4)), {})
    assert set(own.placements) == {"a", "b"}


@pytest.mark.parametrize("seed", range(6))
def test_the_head_of_the_queue_is_as_good_as_brute_force(seed: int) -> None:
    """All subsets in the order of the queue, each job with its best offer at the prices then."""
    rng = random.Random(seed)
    jobs = []
    for n in range(5):
        gpus, left = rng.choice((1, 2)), rng.uniform(10.0, 500.0)
        estimates = fast(left, gpus, rng.uniform(0.5, 4.0), rng.uniform(0.5, 4.0))
        jobs.append(job(str(n), gpus, rng.uniform(0, 90), estimates))
    memory: Memory = {}
    now, scheduler = view(jobs, nodes_of(v=2, p=2), now_s=100.0), Hadar()
    in_order = [now.job_by_id[name] for name in scheduler.rank(now, memory)]
    prices = scheduler.prices(now, memory)
    free = {node.node_id: node.gpus for node in now.nodes}
    total, chosen = scheduler.best_choice(now, in_order, free, prices, memory, {})
    sums = [
        payoff_of(scheduler, now, subset, prices, memory)
        for size in range(6)
        for subset in itertools.combinations(in_order, size)
    ]
    assert total == pytest.approx(max(sums))
    assert set(chosen) <= {own.job_id for own in jobs}


def payoff_of(
    scheduler: Hadar,
    now: ClusterView,
    subset: tuple[CandidateJob, ...],
    prices: Prices,
    memory: Memory,
) -> float:
    free, total = {node.node_id: node.gpus for node in now.nodes}, 0.0
    for own in subset:
        offer: Offer | None = scheduler.best_offer(now, own, free, prices, memory)
        if offer is None or offer.payoff <= 0.0:
            continue
        taken: Placement = offer.placement
        take(free, taken)
        total += offer.payoff
    return total


def test_a_gang_of_two_types_takes_as_long_as_on_the_slower_one() -> None:
    table = RateTable({("v", 2): 4.0, ("p", 2): 1.0}, {("v", 2): 4.0, ("p", 2): 1.0})
    jobs = [RoundsJob("a", 0.0, 2, StepWork(100.0, table))]
    nodes = [TypedNode("n1", "v", 1), TypedNode("n2", "p", 1)]
    world = RoundsWorld(jobs, nodes, Hadar(), RoundsOptions(60.0, mixes_types=True))
    assert world.run().jobs[0].held_gpu_s == 200.0

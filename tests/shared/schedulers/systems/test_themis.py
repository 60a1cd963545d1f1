"""Themis' ratios, offers and leases (NSDI'20), by hand and by properties."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from shared.performance.rates import RateTable
from shared.schedulers.check import check
from shared.schedulers.compose import propose
from shared.schedulers.hooks import Memory
from shared.schedulers.systems.themis import LEASE_S, Themis
from shared.schedulers.view import TypedNode
from simulator.rounds.job import RoundsJob
from simulator.rounds.work import StepWork
from simulator.rounds.world import RoundsOptions, RoundsWorld
from tests.shared.schedulers.views import job, nodes_of, on, rates, view


def test_a_ratio_is_the_finish_time_over_that_with_a_part_of_the_cluster() -> None:
    own = job("a", 2, estimates=rates({"v": 1.0}, 2, 300.0), held_gpu_s=200.0)
    now = view([own], nodes_of(v=4), now_s=500.0)
    # Alone with 4 / 4 GPUs: 200 + 2 x 300 GPU-seconds take 800 s; here 500 s passed, 300 are left.
    assert Themis().ratio(now, own, 4.0) == pytest.approx(1.0)
    # With 4 / 1 GPUs it would use its 2: 400 s.
    assert Themis().ratio(now, own, 1.0) == pytest.approx(2.0)


def test_contention_is_the_mean_over_the_life_of_a_job() -> None:
    memory: Memory = {}
    alone = job("a", estimates=rates({"v": 1.0}, 1, 1000.0))
    others = [job(name, submit_s=100.0) for name in "bcd"]
    for now_s, jobs in ((0.0, [alone]), (100.0, [alone, *others]), (200.0, [alone, *others])):
        Themis().rank(view(jobs, nodes_of(v=1), now_s), memory)
    assert memory["seen"]["a"] == [100.0 + 400.0, 200.0]
    assert memory["seen"]["b"] == [400.0, 100.0]


def test_the_worst_ratio_gets_the_offer() -> None:
    jobs = [
        job(f"j{number}", 1, 0.0, rates({"v": 1.0}, 1, 100.0 * (1 + number))) for number in range(5)
    ]
    now = view(jobs, nodes_of(v=1), now_s=1000.0)
    assert Themis().rank(now, {})[0] == "j0", "the shortest job has waited longest for its length"
    assert set(propose(Themis(), now, {}).placements) == {"j0"}


def test_a_lease_holds_until_its_end() -> None:
    held = job("held", 1, 0.0, rates({"v": 1.0}, 1, 1e6), placement=on("n-v"))
    late = job("late", 1, 0.0, rates({"v": 1.0}, 1, 10.0))
    memory: Memory = {"lease_ends": {"held": LEASE_S}}
    before = view([held, late], nodes_of(v=1), now_s=LEASE_S - 1)
    assert set(propose(Themis(), before, memory).placements) == {"held"}
    after = view([held, late], nodes_of(v=1), now_s=LEASE_S)
    assert set(propose(Themis(), after, memory).placements) == {"late"}
    assert memory["lease_ends"] == {"late": 2 * LEASE_S}
    assert Themis().wake_s(after, {}, memory) == 2 * LEASE_S


def test_equal_jobs_with_their_part_of_the_cluster_have_the_ratio_1() -> None:
    table = RateTable({("v", 1): 1.0})
    jobs = [RoundsJob(f"j{number}", 0.0, 1, StepWork(500.0, table)) for number in range(4)]
    options = RoundsOptions(60.0, on_events=True)
    world = RoundsWorld(jobs, [TypedNode("n", "v", 4)], Themis(), options)
    outcome = world.run()
    assert [own.jct_s for own in outcome.jobs] == [500.0] * 4
    alone = job("j0", estimates=rates({"v": 1.0}, 1, 500.0))
    assert Themis().ratio(view([alone], nodes_of(v=4)), alone, 4.0) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(10))
def test_no_gpu_is_left_that_a_waiting_job_could_use(seed: int) -> None:
    rng = random.Random(seed)
    jobs = []
    for number in range(12):
        gpus = rng.choice((1, 2))
        estimates = rates({"v": 1.0, "p": 0.5}, gpus, rng.uniform(10, 1e4))
        jobs.append(job(f"j{number:02d}", gpus, rng.uniform(0, 900), estimates))
    now = replace(view(jobs, nodes_of(v=5, p=3), now_s=1000.0), seed=seed)
    proposal = propose(Themis(), now, {})
    check(now, proposal)
    waiting = [own for own in jobs if own.job_id not in proposal.placements]
    held: dict[str, int] = {"n-v": 0, "n-p": 0}
    for placement in proposal.placements.values():
        for node, gpus in placement:
            held[node] += gpus
    free = max(5 - held["n-v"], 3 - held["n-p"])
    assert all(own.gpus > free for own in waiting)

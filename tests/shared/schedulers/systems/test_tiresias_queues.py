"""Tiresias' queues, promotion, Gittins index and placement by skew (NSDI'19), by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import ClassVar

import pytest

from shared.schedulers.compose import propose
from shared.schedulers.hooks import Memory
from shared.schedulers.systems.tiresias_queues import (
    LIMITS_GPU_S,
    QUANTUM_GPU_S,
    TiresiasGittins,
    TiresiasLas,
    gittins_index,
)
from shared.schedulers.view import Estimates, TypedNode
from tests.shared.schedulers.views import job, nodes_of, on, view

FIRST, SECOND = LIMITS_GPU_S


def test_a_job_is_in_the_queue_of_its_gpu_seconds() -> None:
    jobs = [
        job("new"),
        job("middle", held_gpu_s=FIRST),
        job("old", held_gpu_s=SECOND),
        job("almost", held_gpu_s=FIRST - 1),
    ]
    memory: Memory = {}
    assert TiresiasLas().rank(view(jobs, nodes_of(v=1)), memory) == [
        "almost",
        "new",
        "middle",
        "old",
    ]
    assert memory["queues"] == [["almost", "new"], ["middle"], ["old"]]


def test_what_runs_stays_in_front_of_its_queue() -> None:
    memory: Memory = {"queues": [["a", "b", "gone"], [], []]}
    jobs = [job("a"), job("b", placement=on("n-v")), job("c", submit_s=5.0)]
    assert TiresiasLas().rank(view(jobs, nodes_of(v=1)), memory) == ["b", "a", "c"]


def test_a_job_beyond_its_limit_is_stopped_for_a_new_one_at_that_time() -> None:
    memory: Memory = {}
    running = job("old", 2, held_gpu_s=FIRST - 100, placement=on("n-v", 2))
    new = job("new", 2, 5.0)
    before = propose(TiresiasLas(), view([running, new], nodes_of(v=2), now_s=7.0), memory)
    assert set(before.placements) == {"old"}
    assert before.wake_s == 7.0 + 50.0
    later = view([replace(running, held_gpu_s=FIRST), new], nodes_of(v=2), now_s=57.0)
    assert set(propose(TiresiasLas(), later, memory).placements) == {"new"}


class Promoting(TiresiasLas):
    name: ClassVar[str] = "promoting"
    starvation: ClassVar[float] = 2.0


def test_a_job_that_starves_begins_again_in_the_first_queue() -> None:
    memory: Memory = {}
    old = job("old", held_gpu_s=FIRST, held_s=100.0)
    ranks = []
    for now_s in (0.0, 199.0, 200.0):
        Promoting().rank(view([old], nodes_of(v=1), now_s=now_s), memory)
        ranks.append([len(queue) for queue in memory["queues"]])
    assert ranks == [[0, 1, 0], [0, 1, 0], [1, 0, 0]]
    again = replace(old, held_gpu_s=FIRST + 10.0)
    Promoting().rank(view([again], nodes_of(v=1), now_s=300.0), memory)
    assert memory["queues"][0] == ["old"], "its seconds count from the promotion on"


def index_of(services: list[float], attained: float) -> float:
    return gittins_index(services, [0.0, *accumulate(services)], attained)


def test_the_index_is_the_chance_of_an_end_per_expected_service() -> None:
    services = [1000.0, 2000.0, 10_000.0]
    expected = (1000.0 + 2000.0 + QUANTUM_GPU_S) / 3
    assert index_of(services, 0.0) == pytest.approx((2 / 3) / expected)
    assert index_of(services, 1500.0) == pytest.approx(0.5 / ((500.0 + QUANTUM_GPU_S) / 2))
    assert index_of(services, 3000.0) == 0.0, "none ends within the quantum"
    assert index_of(services, 10_000.0) == 0.0, "beyond the largest"
    assert index_of([], 0.0) == 0.0


def test_ended_jobs_order_a_queue() -> None:
    memory: Memory = {}
    history = [job(f"h{n}", held_gpu_s=own) for n, own in enumerate((100.0, 3200.0, 3200.0))]
    TiresiasGittins().rank(view(history, nodes_of(v=1)), memory)
    jobs = [job("far", held_gpu_s=200.0), job("near", submit_s=1.0, held_gpu_s=3000.0)]
    assert TiresiasGittins().rank(view(jobs, nodes_of(v=1)), memory) == ["near", "far"]
    assert memory["services"] == [100.0, 3200.0, 3200.0]


def test_skewed_jobs_are_on_as_few_nodes_as_possible() -> None:
    nodes = (TypedNode("n0", "v", 4), TypedNode("n1", "v", 4))
    skewed = Estimates("measured", skew=0.9)
    jobs = [job("even", 3, placement=(("n0", 2), ("n1", 1))), job("skewed", 4, estimates=skewed)]
    placements = propose(TiresiasLas(), view(jobs, nodes), {}).placements
    assert len(placements["skewed"]) == 1, "the other one moves for it"
    flat = [jobs[0], job("skewed", 4)]
    assert len(propose(TiresiasLas(), view(flat, nodes), {}).placements["skewed"]) == 2

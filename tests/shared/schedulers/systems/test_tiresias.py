from __future__ import annotations

from shared.schedulers.compose import propose
from shared.schedulers.hooks import Memory
from shared.schedulers.systems.tiresias import LIMIT_GPU_S, Tiresias
from tests.shared.schedulers.views import job, nodes_of, on, view


def test_a_job_beyond_the_limit_is_stopped_for_a_new_one() -> None:
    memory: Memory = {}
    old = job("old", 2, held_gpu_s=LIMIT_GPU_S, placement=on("n-v", 2))
    now = view([old, job("new", 1, 5.0)], nodes_of(v=2))
    assert set(propose(Tiresias(), now, memory).placements) == {"new"}
    assert memory == {"demoted": ["old"]}


def test_below_the_limit_the_first_submitted_stays_in_front() -> None:
    old = job("old", 2, held_gpu_s=LIMIT_GPU_S - 1, placement=on("n-v", 2))
    now = view([old, job("new", 1, 5.0)], nodes_of(v=2))
    assert propose(Tiresias(), now, {}).placements == {"old": on("n-v", 2)}


def test_the_second_queue_is_in_the_order_of_demotion() -> None:
    memory: Memory = {"demoted": ["b", "gone"]}
    jobs = [
        job("a", held_gpu_s=LIMIT_GPU_S),
        job("b", held_gpu_s=LIMIT_GPU_S),
        job("c", submit_s=9),
    ]
    assert Tiresias().rank(view(jobs, nodes_of(v=1)), memory) == ["c", "b", "a"]

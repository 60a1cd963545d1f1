"""Workers and their GPUs in the executor's state."""

from __future__ import annotations

from services.executor.core.virtual.state import Worker
from tests.services.executor.facts import a_lane, a_node


def a_worker(id: str, *gpus: int, job: str = "j1", attempt: int = 1, milli: int = 1000) -> Worker:
    return Worker(id, job, attempt, "n1", gpus, milli)


def test_a_gpu_is_busy_if_its_workers_would_take_more_than_all_of_it() -> None:
    lane = a_lane()
    lane.occupy(a_worker("a", 0, 1, milli=600))
    assert list(lane.busy_gpus(a_worker("b", 0, 1, 2, milli=500))) == [0, 1]
    assert list(lane.busy_gpus(a_worker("b", 0, 1, 2, milli=400))) == []


def test_an_ended_worker_frees_its_own_part_of_a_gpu() -> None:
    lane = a_lane()
    first, second = a_worker("a", 0, milli=500), a_worker("b", 0, milli=500)
    for worker in (first, second):
        lane.add(worker)
        lane.occupy(worker)
    lane.vacate(first)
    assert lane.use["n1", 0] == {"b": 500}
    assert lane.living_workers() == [second]


def test_workers_of_a_job_are_those_of_one_attempt() -> None:
    lane = a_lane()
    old, new = a_worker("a", 0), a_worker("b", 1, attempt=2)
    lane.add(old)
    lane.add(new)
    assert lane.workers_of("j1", 2) == [new]
    assert lane.workers_of("j9", 1) == []


def test_the_last_dropped_worker_takes_its_job_from_the_index() -> None:
    lane = a_lane()
    workers = [a_worker("a", 0), a_worker("b", 1)]
    for worker in workers:
        lane.add(worker)
    lane.drop(workers[0])
    assert lane.of_job == {"j1": ["b"]}
    lane.drop(workers[1])
    assert (lane.of_job, lane.workers) == ({}, {})


def test_nodes_of_other_executors_are_passed_over() -> None:
    lane = a_lane(a_node("n1"), a_node("n2"))
    assert [node.node_id for node in lane.own_nodes(["n2", "elsewhere"])] == ["n2"]

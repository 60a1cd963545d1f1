from __future__ import annotations

import pytest

from simulator.spot.jobs import SpotTraceJob
from simulator.spot.queue import (
    Order,
    SizedQueue,
    Waiting,
    by_submission,
    largest_first,
    largest_workers_first,
    smallest_first,
)

GANGS = [(2, 8), (1, 4), (1, 1), (1, 8), (1, 1)]


def queue_with(order: Order, blocks: bool = False) -> SizedQueue:
    """Return a queue of `GANGS` as (workers, GPUs), submitted one second after another."""
    queue = SizedQueue(order, blocks)
    for number, (workers, gpus) in enumerate(GANGS):
        job = SpotTraceJob(number, 0, True, workers, gpus, float(number), 60.0, 1)
        queue.add(Waiting(job.submit_s, number, job, 60.0, job.submit_s))
    return queue


@pytest.mark.parametrize(
    ("order", "numbers"),
    [
        (by_submission, [0, 1, 2, 3, 4]),
        (largest_first, [0, 3, 1, 2, 4]),
        (largest_workers_first, [3, 0, 1, 2, 4]),
        (smallest_first, [2, 4, 1, 3, 0]),
    ],
)
def test_jobs_start_in_order(order: Order, numbers: list[int]) -> None:
    started: list[int] = []
    queue = queue_with(order)

    def start(waiting: Waiting) -> bool:
        started.append(waiting.number)
        return True

    queue.start_all(start)
    assert started == numbers
    assert len(queue) == 0
    assert queue.oldest_since_s() is None


def test_none_passes_a_job_that_cannot_start_where_the_queue_blocks() -> None:
    started: list[int] = []

    def start(waiting: Waiting) -> bool:
        if waiting.job.gpus > 8:
            return False
        started.append(waiting.number)
        return True

    queue_with(by_submission, blocks=True).start_all(start)
    assert started == []
    queue_with(by_submission).start_all(start)
    assert started == [1, 2, 3, 4]


def test_a_size_that_failed_and_larger_ones_are_tried_once() -> None:
    tried: list[int] = []
    queue = queue_with(smallest_first)

    def fail(waiting: Waiting) -> bool:
        tried.append(waiting.number)
        return False

    queue.start_all(fail)
    assert tried == [2]
    assert queue.demand_gpus() == {0: 30}
    assert queue.oldest_since_s() == 0.0

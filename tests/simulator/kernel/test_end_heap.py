"""The heap of the ends of running jobs."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from simulator.kernel import end_heap, state
from tests.simulator.kernel.interpreted import interpret

COUNT = 40


@pytest.fixture(autouse=True)
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    interpret(monkeypatch, end_heap)


def filled(seed: int) -> tuple[Any, Any, dict[int, int]]:
    """Return a heap, the jobs, and the time of each job's end."""
    random = Random(seed)
    ends, jobs = state.table(state.EndRow, COUNT), state.table(state.JobRow, COUNT)
    times = {job: random.randrange(10) for job in random.sample(range(COUNT), COUNT)}
    for size, (job, at_ms) in enumerate(times.items()):
        end_heap.add(ends, jobs, size, at_ms, job)
    return ends, jobs, times


@pytest.mark.parametrize("seed", range(3))
def test_the_first_entry_is_the_next_end_and_equal_times_go_by_job(seed: int) -> None:
    ends, jobs, times = filled(seed)
    order = []
    for size in range(COUNT, 0, -1):
        order.append((int(ends[0].at_ms), int(ends[0].job)))
        end_heap.remove(ends, jobs, size, int(ends[0].job))
    assert order == sorted((at_ms, job) for job, at_ms in times.items())


def test_any_job_can_be_removed_and_the_others_keep_their_index() -> None:
    ends, jobs, times = filled(9)
    removed = Random(1).sample(range(COUNT), 15)
    for count, job in enumerate(removed):
        end_heap.remove(ends, jobs, COUNT - count, job)
    left = COUNT - len(removed)
    assert {int(ends[at].job) for at in range(left)} == set(times) - set(removed)
    for at in range(left):
        assert jobs[ends[at].job].heap_index == at
        assert at == 0 or not end_heap.before(ends, at, (at - 1) // 2)


def test_the_entry_that_fills_a_gap_may_rise() -> None:
    ends, jobs = state.table(state.EndRow, 7), state.table(state.JobRow, 7)
    for job, at_ms in enumerate([0, 10, 1, 11, 12, 2, 3]):
        end_heap.add(ends, jobs, job, at_ms, job)
    end_heap.remove(ends, jobs, 7, 3)
    assert ends.at_ms[:6].tolist() == [0, 3, 1, 10, 12, 2]

"""The makespan of a workload on a sum of GPUs."""

from __future__ import annotations

from simulator.workload.makespan import makespan_s
from simulator.workload.rows import WorkloadJob


def job(key: str, submit_s: float, duration_s: float, gpus: float) -> WorkloadJob:
    return WorkloadJob(key, "t", "u", "n", submit_s, duration_s, 1, gpus, None, 1.0, 1.0, None)


def test_jobs_that_fit_together_run_together() -> None:
    assert makespan_s([job("a", 0, 10, 4), job("b", 0, 20, 4)], 8) == 20


def test_a_job_that_does_not_fit_is_skipped_until_it_does() -> None:
    jobs = [job("a", 0, 10, 6), job("b", 1, 10, 4), job("c", 2, 5, 2)]
    assert makespan_s(jobs, 8) == 20


def test_fractions_of_a_gpu_add_up_exactly() -> None:
    assert makespan_s([job(f"k{n}", 0, 10, 0.1) for n in range(10)], 1) == 10


def test_no_jobs_take_no_time() -> None:
    assert makespan_s([], 8) == 0

"""The makespan of a workload and the time scale that is picked from it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.workload.makespan import makespan_s
from simulator.workload.rows import WorkloadJob, make_gang
from simulator.workload.scale import (
    SUBMITS_PER_S,
    auto_scale,
    oversized,
    plan_replay,
    submit_offsets_s,
)
from simulator.workload.synthetic import generate

CAPACITY = 16


def job(key: str, submit_s: float, duration_s: float, gpus: float) -> WorkloadJob:
    workers, each = make_gang(gpus)
    return WorkloadJob(
        key, "t", "u", key, submit_s, duration_s, workers, each, None, 1.0, 1.0, None
    )


ROWS = st.lists(
    st.tuples(
        st.floats(0, 1e5),
        st.just(0.0) | st.floats(1e-3, 1e5),
        st.sampled_from([0, 0.25, 0.5, 1, 2, 4, 8, 12, 16]),
    ),
    min_size=1,
    max_size=40,
)
WORKLOADS = ROWS.map(lambda rows: [job(f"{n:03}", *row) for n, row in enumerate(sorted(rows))])


def test_jobs_that_fit_together_run_together() -> None:
    assert makespan_s([job("a", 0, 10, 8), job("b", 0, 10, 8)], CAPACITY) == 10


def test_a_job_waits_for_gpus_to_come_free() -> None:
    assert makespan_s([job("a", 0, 10, 12), job("b", 1, 10, 8)], CAPACITY) == 20


def test_a_job_that_does_not_fit_now_is_passed_by_a_smaller_one() -> None:
    jobs = [job("a", 0, 10, 12), job("b", 1, 10, 8), job("c", 2, 5, 4)]
    assert makespan_s(jobs, CAPACITY) == 20


def test_of_jobs_of_two_sizes_the_older_starts_first() -> None:
    jobs = [job("a", 0, 10, 16), job("b", 1, 100, 9), job("c", 2, 1, 8)]
    assert makespan_s(jobs, CAPACITY) == 111


def test_a_makespan_counts_from_the_first_submit() -> None:
    assert makespan_s([job("a", 1000, 10, 1)], CAPACITY) == 10
    assert makespan_s([], CAPACITY) == 0


@given(WORKLOADS)
def test_a_makespan_lies_between_its_bounds(jobs: list[WorkloadJob]) -> None:
    got = makespan_s(jobs, CAPACITY)
    start = jobs[0].submit_s
    longest = max(job.submit_s + job.duration_s for job in jobs) - start
    work = sum(job.gpus * job.duration_s for job in jobs) / CAPACITY
    assert got >= max(longest, work) * (1 - 1e-9)
    assert got <= jobs[-1].submit_s - start + sum(job.duration_s for job in jobs) + 1e-6


@given(WORKLOADS, st.floats(1, 1e4), st.floats(1, 1e4))
def test_a_longer_target_never_gives_a_larger_scale(
    jobs: list[WorkloadJob], one: float, other: float
) -> None:
    shorter, longer = sorted((one, other))
    assert auto_scale(jobs, CAPACITY, shorter) >= auto_scale(jobs, CAPACITY, longer) >= 1


@given(WORKLOADS, st.floats(1, 1e4), st.floats(1, 10))
def test_longer_jobs_never_give_a_smaller_scale_on_a_pool_without_contention(
    jobs: list[WorkloadJob], target_wall_s: float, factor: float
) -> None:
    stretched = [replace(job, duration_s=job.duration_s * factor) for job in jobs]
    room = sum(job.gpus for job in jobs) + 1
    assert auto_scale(stretched, room, target_wall_s) >= auto_scale(jobs, room, target_wall_s)


@given(WORKLOADS)
def test_the_plan_ends_within_a_target_that_can_be_met(jobs: list[WorkloadJob]) -> None:
    plan = plan_replay(jobs, CAPACITY, 160)
    assert plan.expected_wall_s <= 160 * (1 + 1e-9)


def test_the_demo_workload_ends_within_its_three_minutes() -> None:
    assert plan_replay(generate(2000, 0), 256, 160).expected_wall_s <= 160


def test_a_short_workload_is_not_slowed_down() -> None:
    assert auto_scale([job("a", 0, 5, 1)], CAPACITY, 160) == 1


def test_a_job_larger_than_the_pool_is_reported_and_does_not_bend_the_scale() -> None:
    small = [job("a", 0, 1e4, 1)]
    large = [*small, job("big", 0, 1e9, 32)]
    assert oversized(large, CAPACITY) == ("big",)
    assert plan_replay(large, CAPACITY, 160).oversized == ("big",)
    assert auto_scale(large, CAPACITY, 160) == pytest.approx(
        auto_scale(small, CAPACITY, 160), rel=0.01
    )


def test_a_burst_is_paced_and_keeps_its_order() -> None:
    jobs = [job(f"{n:03}", 0, 1, 1) for n in range(300)]
    offsets = submit_offsets_s(jobs, 1000)
    assert offsets[0] == 0
    assert offsets[-1] == pytest.approx(299 / SUBMITS_PER_S)
    assert plan_replay(jobs, CAPACITY, 60, 1000).peak_submits_per_s <= SUBMITS_PER_S + 1


@given(WORKLOADS, st.floats(0.1, 1e5))
def test_no_submit_comes_before_its_time(jobs: list[WorkloadJob], scale: float) -> None:
    offsets = submit_offsets_s(jobs, scale)
    assert offsets == sorted(offsets)
    for submitted, at in zip(jobs, offsets, strict=True):
        assert at >= (submitted.submit_s - jobs[0].submit_s) / scale


def test_far_more_jobs_than_the_target_can_take_give_way_to_pacing() -> None:
    jobs = [job(f"{n:05}", n * 100.0, 10, 1) for n in range(20_000)]
    plan = plan_replay(jobs, 4096, 60)
    assert plan.arrival_wall_s >= 20_000 / SUBMITS_PER_S * 0.99
    assert plan.expected_wall_s < 3 * 20_000 / SUBMITS_PER_S


@pytest.mark.parametrize(("capacity", "target"), [(0, 60), (-1, 60), (8, 0)])
def test_a_pool_or_a_target_of_nothing_is_refused(capacity: float, target: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        auto_scale([job("a", 0, 1, 1)], capacity, target)


def test_a_time_scale_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above zero"):
        plan_replay([job("a", 0, 1, 1)], CAPACITY, 60, 0)

"""Timelines worked out by hand: a round comes 1 ms after the facts that it decides on."""

from __future__ import annotations

import heapq
from random import Random

import numpy as np
import pytest

from simulator.kernel.run import Rules, simulate
from simulator.kernel.work import build_work
from simulator.metrics.outcome import ScheduleOutcome
from simulator.workload.jobs import columns_from
from tests.simulator.kernel.workloads import mixed, work

ONE_NODE = np.full(1, 8, np.int64)


def times(outcome: ScheduleOutcome) -> list[tuple[float, float]]:
    return list(zip(outcome.start_s.tolist(), outcome.end_s.tolist(), strict=True))


def test_strict_waits_for_the_head_of_the_queue() -> None:
    jobs = work((0, 100, 1, 6), (10, 50, 1, 8), (20, 5, 1, 1))
    outcome = simulate(jobs, ONE_NODE, Rules("fcfs", "strict")).outcome
    assert times(outcome) == [(0.001, 100.001), (100.002, 150.002), (150.003, 155.003)]


def test_skip_passes_over_a_job_that_does_not_fit() -> None:
    jobs = work((0, 100, 1, 6), (10, 50, 1, 8), (20, 5, 1, 1))
    outcome = simulate(jobs, ONE_NODE, Rules("fcfs", "skip")).outcome
    assert times(outcome) == [(0.001, 100.001), (100.002, 150.002), (20.001, 25.001)]


def test_easy_backfills_only_jobs_that_end_by_the_shadow() -> None:
    jobs = work((0, 100, 1, 6), (10, 30, 1, 8), (20, 50, 1, 2), (80, 200, 1, 2))
    outcome = simulate(
        jobs, ONE_NODE, Rules("fcfs", "easy", runtime="oracle", easy_runtime="user")
    ).outcome
    assert times(outcome) == [
        (0.001, 100.001),
        (100.002, 130.002),
        (20.001, 70.001),
        (130.003, 330.003),
    ]


def test_easy_backfills_off_the_heads_nodes_however_long_the_job_runs() -> None:
    jobs = work((0, 100, 1, 8), (1, 500, 1, 4), (10, 30, 1, 8), (20, 900, 1, 4))
    outcome = simulate(jobs, np.full(2, 8, np.int64), Rules("fcfs", "easy")).outcome
    assert times(outcome) == [
        (0.001, 100.001),
        (1.001, 501.001),
        (100.002, 130.002),
        (20.001, 920.001),
    ]


@pytest.mark.parametrize(("residency_s", "stopped_ms"), [(0.0, 100_001), (200.0, 200_002)])
def test_rank_stops_the_job_with_more_remaining_work(residency_s: float, stopped_ms: int) -> None:
    jobs = work((0, 1000, 1, 8), (100, 10, 1, 8))
    rules = Rules(
        "srsf",
        runtime="oracle",
        preemption=True,
        min_residency_s=residency_s,
        preemption_protection="residency",
        large_gang_share=1.0,
        restart_s=60.0,
        checkpoint_s=60.0,
    )
    ran = simulate(jobs, ONE_NODE, rules)
    ran_ms = stopped_ms - 1
    checkpointed_ms = ran_ms // 60_000 * 60_000
    second = stopped_ms + 1 + 10_000 + 1
    assert times(ran.outcome) == [
        (0.001, (second + 1_000_000 - checkpointed_ms + 60_000) / 1000),
        ((stopped_ms + 1) / 1000, (stopped_ms + 10_001) / 1000),
    ]
    assert ran.preemptions == 1
    assert ran.outcome.starts.tolist() == [2, 1]
    assert ran.outcome.lost_s[0] == (ran_ms - checkpointed_ms + 60_000) / 1000


@pytest.mark.parametrize(("share", "stops"), [(0.25, [1, 2, 1, 1]), (1.0, [2, 2, 1, 1])])
def test_where_many_gangs_are_large_rank_stops_the_small(share: float, stops: list[int]) -> None:
    jobs = work((0, 1000, 1, 6), (1, 900, 1, 2), (100, 10, 1, 6), (101, 10, 1, 2))
    rules = Rules(
        "srsf", runtime="oracle", preemption=True, min_residency_s=0.0, large_gang_share=share
    )
    assert simulate(jobs, ONE_NODE, rules).outcome.starts.tolist() == stops


def test_queues_of_single_gpus_follow_the_recursion_of_many_servers() -> None:
    random, submit_s, rows = Random(5), 0.0, []
    for _ in range(200):
        submit_s = round(submit_s + random.expovariate(1 / 60), 3)
        rows.append((submit_s, round(random.uniform(1, 900), 3), 1, 1))
    outcome = simulate(work(*rows), ONE_NODE, Rules("fcfs", "strict")).outcome
    free_ms, expected = [0] * 8, []
    for submit, duration, _, _ in rows:
        start_ms = max(round(submit * 1000), heapq.heappop(free_ms)) + 1
        heapq.heappush(free_ms, start_ms + round(duration * 1000))
        expected.append(start_ms / 1000)
    assert outcome.start_s.tolist() == expected


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
def test_no_more_gpus_are_used_than_there_are(mode: str) -> None:
    jobs = build_work(columns_from(mixed(150, 2)))
    outcome = simulate(jobs, np.full(4, 8, np.int64), Rules("saf", mode)).outcome  # type: ignore[arg-type]
    moments = np.concatenate((outcome.end_s, outcome.start_s))
    change = np.concatenate((-outcome.gpus, outcome.gpus))
    used = np.cumsum(change[np.lexsort((change, moments))])
    assert outcome.fits.all()
    assert used.max() > 24
    assert used.max() <= 32
    assert used[-1] == 0


def test_a_job_that_cannot_fit_has_no_times() -> None:
    outcome = simulate(work((0, 10, 1, 4), (1, 10, 2, 8)), ONE_NODE, Rules()).outcome
    assert outcome.fits.tolist() == [True, False]
    assert np.isnan(outcome.start_s).tolist() == [False, True]


@pytest.mark.parametrize("policy", ["srsf", "gittins", "learned", "las"])
def test_equal_inputs_give_equal_outputs_and_all_work_is_done(policy: str) -> None:
    jobs = build_work(columns_from(mixed(150, 3)))
    rules = Rules(
        policy,
        preemption=True,
        min_residency_s=20.0,
        preemption_protection="residency",
        large_gang_share=1.0,
    )
    one, other = (simulate(jobs, np.full(4, 8, np.int64), rules) for _ in range(2))
    assert one.preemptions > 0
    assert times(one.outcome) == times(other.outcome)
    worked_s = one.outcome.held_s - one.outcome.lost_s
    np.testing.assert_allclose(worked_s, one.outcome.duration_s, atol=1e-6)


def test_a_node_of_more_gpus_than_a_number_has_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="nodes of 63 GPUs, must be 1 to 62"):
        simulate(work((0.0, 1.0, 1, 1)), np.array([8, 63]), Rules())

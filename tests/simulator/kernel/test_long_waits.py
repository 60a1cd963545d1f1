"""No predictions, however wrong, keep the head of an EASY queue waiting for longer than a bound."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.placement.core.pool.overdue import LEAST_HOLD_S
from simulator.kernel.codes import MAX_SETTLE_MS
from simulator.kernel.run import Rules, simulate
from simulator.kernel.work import build_work
from simulator.workload.jobs import columns_from
from simulator.workload.rows import WorkloadJob

NODES, GPUS = 3, 8
HOUR_S = 3600.0
WAIT_S = 12 * HOUR_S
HEAD_S = 2 * HOUR_S
"""When the head comes."""
SETTLE_S = MAX_SETTLE_MS / 1000.0
ENDLESS_S = 1000 * HOUR_S


def job(key: str, at_s: float, run_s: float, gpus: int, name: str, workers: int = 1) -> WorkloadJob:
    user = "honest" if name == "head" else "greedy"
    return WorkloadJob(key, user, user, name, at_s, run_s, workers, float(gpus), None, 1, 1, True)


def lies(seed: int, longest_s: float, names: int) -> list[WorkloadJob]:
    """Jobs of a minute that teach each name a short run time, a pool full of long ones of the same
    names before the head comes, and behind it more of both than the pool can hold.
    """
    draws = Random(seed)
    jobs: list[WorkloadJob] = []

    def add(at_s: float, run_s: float, gpus: int) -> None:
        name = f"run{'ghijklmn'[draws.randrange(names)]}"
        jobs.append(job(f"k{len(jobs):05}", round(at_s, 3), round(run_s, 3), gpus, name))

    for number in range(60):
        add(number * 60.0, 60.0, 1)
    for _ in range(NODES * GPUS):
        add(HEAD_S - 100.0, draws.uniform(0.1, 1.0) * longest_s, 1)
    at_s = HEAD_S + 1.0
    while at_s < HEAD_S + 8 * max(WAIT_S, longest_s):
        for _ in range(draws.choice((1, 3, 8))):
            add(at_s, draws.uniform(0.5, 1.0) * longest_s, draws.choice((1, 2, 4)))
            add(at_s, 30.0, 1)
        at_s += draws.uniform(0.02, 0.2) * longest_s
    return jobs


def head_waits_s(jobs: list[WorkloadJob], gang: tuple[int, int], **own: Any) -> float:
    """Return how long a gang of (workers, GPUs) waits that comes when the pool is full."""
    head = job("head", HEAD_S, HOUR_S, gang[1], "head", gang[0])
    ordered = sorted([*jobs, head], key=lambda each: (each.submit_s, each.job_key))
    rules = Rules("fcfs", "easy", **own)
    work = build_work(columns_from(ordered))
    ran = simulate(work, np.full(NODES, GPUS, np.int64), rules).outcome
    at = ordered.index(head)
    return float(ran.start_s[at] - ran.submit_s[at])


def endless() -> WorkloadJob:
    """A job that holds one GPU since before the head came, and does not end."""
    return job("endless", HEAD_S - 200.0, ENDLESS_S, 1, "endless")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    longest_h=st.floats(1.0, 60.0),
    names=st.integers(1, 8),
    gang=st.sampled_from([(1, 8), (2, 8), (3, 8), (4, 4), (6, 4)]),
)
def test_the_head_starts_within_its_wait_and_the_longest_run(
    seed: int, longest_h: float, names: int, gang: tuple[int, int]
) -> None:
    longest_s = longest_h * HOUR_S
    waited_s = head_waits_s(lies(seed, longest_s, names), gang, reserve_after_s=WAIT_S)
    assert waited_s <= bound_s(longest_s)


def bound_s(longest_s: float) -> float:
    """Return the bound of decision 0030; a reservation lapses after a day at the earliest."""
    if longest_s <= max(WAIT_S, LEAST_HOLD_S):
        return WAIT_S + longest_s + SETTLE_S
    return 6 * longest_s + SETTLE_S


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    longest_h=st.floats(1.0, 20.0),
    gang=st.sampled_from([(1, 8), (2, 8), (4, 4)]),
)
def test_the_reservation_leaves_the_node_of_a_job_that_does_not_end(
    seed: int, longest_h: float, gang: tuple[int, int]
) -> None:
    """One reservation on its node lapses, which takes four days at most with what follows."""
    longest_s = longest_h * HOUR_S
    jobs = [*lies(seed, longest_s, 4), endless()]
    waited_s = head_waits_s(jobs, gang, reserve_after_s=WAIT_S)
    assert waited_s <= WAIT_S + 5 * LEAST_HOLD_S + longest_s + 3 * SETTLE_S


def test_a_gang_that_has_to_wait_for_a_job_that_does_not_end_leaves_gpus_to_others() -> None:
    """Without a lapse all other GPUs are idle until that job ends."""
    jobs = [*lies(0, 5 * HOUR_S, 4), endless()]
    head = job("head", HEAD_S, HOUR_S, 8, "head", NODES)
    ordered = sorted([*jobs, head], key=lambda each: (each.submit_s, each.job_key))
    rules = Rules("fcfs", "skip", reserve_after_s=WAIT_S)
    ran = simulate(build_work(columns_from(ordered)), np.full(NODES, GPUS, np.int64), rules)
    begun_s = np.sort(ran.outcome.start_s)
    started = int(np.searchsorted(begun_s, HEAD_S + ENDLESS_S / 2))
    assert started > 0.9 * len(ordered)


@pytest.mark.parametrize("seed", range(3))
def test_a_tenant_delayed_the_head_for_days_before(seed: int) -> None:
    longest_s = 5 * HOUR_S
    jobs, gang = lies(seed, longest_s, 4), (3, 8)
    trusting = head_waits_s(jobs, gang, guard_predictions=False)
    guarded = head_waits_s(jobs, gang)
    bounded = head_waits_s(jobs, gang, reserve_after_s=WAIT_S)
    assert trusting > WAIT_S + longest_s + SETTLE_S >= bounded
    assert guarded < trusting

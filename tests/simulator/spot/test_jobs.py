from __future__ import annotations

import numpy as np
import pytest

from simulator.spot.jobs import (
    DAY_S,
    MOST_S,
    SIZES,
    SPOT_MEDIAN_S,
    SPOT_P90_S,
    SpotDemand,
    gang_of,
    spot_trace,
)

DEMAND = SpotDemand(gpus=2296, days=9, seed=100)
JOBS = spot_trace(DEMAND)


def test_the_same_seed_has_the_same_jobs_and_another_one_others() -> None:
    assert spot_trace(DEMAND) == JOBS
    assert spot_trace(SpotDemand(gpus=2296, days=9, seed=101)) != JOBS


def test_jobs_are_in_order_and_spot_jobs_begin_with_the_first_day() -> None:
    times_s = [job.submit_s for job in JOBS]
    assert times_s == sorted(times_s)
    assert [job.number for job in JOBS] == list(range(len(JOBS)))
    assert all(0 <= job.submit_s < 9 * DAY_S for job in JOBS if job.is_spot)
    assert all(job.duration_s <= MOST_S for job in JOBS)


def test_spot_jobs_have_the_published_durations_and_load() -> None:
    spot = [job for job in JOBS if job.is_spot]
    median_s, p90_s = np.quantile([job.duration_s for job in spot], (0.5, 0.9))
    assert median_s == pytest.approx(SPOT_MEDIAN_S, rel=0.05)
    assert p90_s == pytest.approx(SPOT_P90_S, rel=0.1)
    load = sum(job.gpus * job.duration_s for job in spot) / (2296 * 9 * DAY_S)
    assert load == pytest.approx(DEMAND.spot_load, rel=0.25)


def test_guaranteed_jobs_hold_about_their_load() -> None:
    end_s = 9.0 * DAY_S
    held = sum(
        job.gpus * max(0.0, min(end_s, job.submit_s + job.duration_s) - max(0.0, job.submit_s))
        for job in JOBS
        if not job.is_spot
    )
    assert held / (2296 * end_s) == pytest.approx(DEMAND.guaranteed_load, rel=0.15)


def test_only_spot_jobs_have_guaranteed_hours() -> None:
    assert {job.guarantee_h for job in JOBS if not job.is_spot} == {0}
    assert {job.guarantee_h for job in JOBS if job.is_spot} == {1, 2, 4}


@pytest.mark.parametrize("gpus", SIZES)
def test_a_gang_larger_than_a_node_has_whole_nodes(gpus: int) -> None:
    workers, each = gang_of(gpus)
    assert workers * each == gpus
    assert each <= 8
    assert workers == 1 or each == 8

"""The comparison of workers on two public traces; tests are skipped where these are absent."""

from __future__ import annotations

import pytest

from benchmarks.parts.failslow.real import BYTEDANCE, PAI, real_figures
from simulator.workload.locate import has_trace


@pytest.mark.slow
@pytest.mark.skipif(not has_trace(BYTEDANCE), reason=f"needs the shared trace {BYTEDANCE}")
def test_the_slow_worker_of_the_real_job_is_named() -> None:
    suspected = real_figures()["bytedance"]["suspected"]
    assert [(one["stage"], one["dp_rank"]) for one in suspected] == [(0, 0)]
    assert suspected[0]["slowdown"] > 2


@pytest.mark.skipif(not has_trace(PAI), reason=f"needs the shared trace {PAI}")
def test_the_straggling_workers_of_the_real_jobs_are_named() -> None:
    jobs = real_figures()["pai"]
    assert list(jobs["job_1"]["suspected"]) == list(jobs["job_1"]["cleared"]) == [6]
    assert sorted(jobs["job_3"]["suspected"]) == [6, 7, 8, 9]


@pytest.mark.slow
@pytest.mark.skipif(
    not (has_trace(BYTEDANCE) and has_trace(PAI)), reason="needs both shared traces"
)
def test_no_healthy_worker_of_the_real_jobs_is_suspected() -> None:
    healthy = real_figures()["healthy"]
    assert healthy["alarms_in_them"] == healthy["alarms_of_them"] == 0
    assert healthy["worker_hours"] > 1

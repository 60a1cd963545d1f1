"""Distributions of a trace are those that history itself gives, job by job."""

from __future__ import annotations

import numpy as np

from services.priority.core.history import History
from simulator.kernel.causal import distributions_of
from simulator.kernel.work import build_work
from simulator.workload.jobs import columns_from
from simulator.workload.source import load


def test_each_job_gets_what_history_knew_at_its_submission() -> None:
    jobs = load("synthetic:philly", 120, seed=3).jobs
    work = build_work(columns_from(jobs))
    history = History()
    ended: set[int] = set()
    expected = []
    ends_ms = work.submit_ms + work.duration_ms
    for at, job in enumerate(jobs):
        for other in np.argsort(ends_ms, kind="stable").tolist():
            if other not in ended and ends_ms[other] <= work.submit_ms[at]:
                ended.add(other)
                one = jobs[other]
                history.learn(one.tenant, one.user, one.name, *run_of(work, other))
        expected.append(history.estimate(job.tenant, job.user, job.name, run_of(work, at)[0]).p)
    assert len(ended) > 40
    np.testing.assert_array_equal(distributions_of(work), np.array(expected))


def run_of(work: object, job: int) -> tuple[float, float]:
    return float(work.gang[job]), float(work.duration_ms[job]) / 1000.0  # type: ignore[attr-defined]

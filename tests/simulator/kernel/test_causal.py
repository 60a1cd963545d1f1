"""Distributions of a trace are those that history itself gives, job by job."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from services.priority.core.history.distributions import CUT_SHORT_S, Floats
from services.priority.core.history.history import History
from simulator.kernel.causal import distributions_of
from simulator.kernel.work import build_work
from simulator.workload.jobs import columns_from
from simulator.workload.source import load


@pytest.mark.parametrize("guards", [False, True])
def test_each_job_gets_what_history_knew_at_its_submission(guards: bool) -> None:
    failing = Random(5)
    jobs = [
        replace(job, succeeded=failing.random() > 0.35)
        for job in load("synthetic:philly", 120, seed=3).jobs
    ]
    work = build_work(columns_from(jobs))
    history = History()
    ended: set[int] = set()
    expected: list[Floats] = []
    predicted_s: list[float] = []
    cut_short = 0
    ends_ms = work.submit_ms + work.duration_ms
    for at, job in enumerate(jobs):
        for other in np.argsort(ends_ms, kind="stable").tolist():
            if other not in ended and ends_ms[other] <= work.submit_ms[at]:
                ended.add(other)
                one = jobs[other]
                if guards and not one.succeeded and one.duration_s < CUT_SHORT_S:
                    cut_short += 1
                    if one.duration_s <= predicted_s[other]:
                        continue
                history.learn(one.tenant, one.user, one.name, *run_of(work, other))
        estimate = history.estimate(job.tenant, job.user, job.name, run_of(work, at)[0])
        expected.append(estimate.p)
        predicted_s.append(estimate.mean_s)
    assert len(ended) > 40
    assert cut_short > 3 or not guards
    np.testing.assert_array_equal(distributions_of(work, guards=guards), np.array(expected))


def run_of(work: object, job: int) -> tuple[float, float]:
    return float(work.gang[job]), float(work.duration_ms[job]) / 1000.0  # type: ignore[attr-defined]

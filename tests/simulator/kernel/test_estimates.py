"""History as arrays of codes against `History`, group by group."""

from __future__ import annotations

import numpy as np

from services.priority.core.history import History, groups
from simulator.kernel.warm import learn_counts
from simulator.kernel.work import build_work
from simulator.workload.jobs import columns_from
from tests.simulator.kernel.workloads import mixed


def test_learned_counts_equal_those_of_history() -> None:
    jobs = mixed(120, 4)
    work = build_work(columns_from(jobs))
    counts = learn_counts(work)
    history = History()
    for at in np.argsort(work.submit_ms + work.duration_ms, kind="stable"):
        job = jobs[at]
        history.learn(job.tenant, job.user, job.name, float(work.gang[at]), job.duration_s)
    compared = set()
    for at, job in enumerate(jobs):
        named = groups(job.tenant, job.user, job.name, float(work.gang[at]))
        for level, group in enumerate(named):
            assert (group is None) == (work.groups[at, level] < 0)
            if group is not None:
                compared.add(group)
                np.testing.assert_array_equal(counts[work.groups[at, level]], history.counts[group])
    assert compared == set(history.counts)
